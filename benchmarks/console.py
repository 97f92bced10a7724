"""Measures the console on a log of many units: the first reading, a page, a filter, and what an open page costs.

The log is in moto, in a process of its own. A page is asked for over HTTP, one after the other. Processor time is that
of the console's process, so other programs on the machine do not count; the time on the clock they do. The page that
is left open asks again as its script does: the list of units each 2 seconds.

    python benchmarks/console.py [--units N] [--pages N] [--open SECONDS] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import psutil
from runs.machine import warn_unless_quiet

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))  # the console is started as the tests start it

from kainite.store.dynamodb import DynamoDBStore  # noqa: E402
from kainite_demo import services  # noqa: E402
from support.console_world import ServedConsole, served_console  # noqa: E402
from support.growing_log import GrowingLog  # noqa: E402

AIM_PAGE_MS, AIM_FILTER_MS, AIM_CORE = 100, 500, 0.01
ASKED_EVERY_S = 2.0
SETTINGS = """applicationName = app
regionName = us-east-1
dynamoDBEndpoint = {endpoint}
unitsOfWork = true
logTableName = log
"""
PAGES = {"overview": "", "units": "units", "unit": "unit?uow=T-000100", "apply": "apply"}
FILTERS = {"by name": "units?name=T-0999*", "by table": "units?table=t3", "by a name that is none": "units?name=zzz"}


def write(endpoint: str, units: int) -> None:
    """Writes the log."""
    store = DynamoDBStore(services.dynamodb_client(endpoint), "log")
    store.create()
    GrowingLog(store).units(f"T-{number:06d}" for number in range(units))


async def read_whole(console: ServedConsole, units: int) -> float:
    """Has the console read the log to its end; returns the seconds that it took."""
    begun = time.perf_counter()
    while f"of {units:,}</span>" not in (await console.ask("/app/units")).text:  # noqa: ASYNC110 - it is asked
        await asyncio.sleep(0.05)
    return time.perf_counter() - begun


async def asked(console: ServedConsole, path: str, times: int) -> dict[str, float]:
    """Asks for a page again and again; returns milliseconds on the clock and of the processor, each the median."""
    process, clock, processor = psutil.Process(console.pid), list[float](), list[float]()
    for _ in range(times):
        used, begun = _used(process), time.perf_counter()
        answer = await console.ask(f"/app/{path}")
        clock.append(1e3 * (time.perf_counter() - begun))
        processor.append(1e3 * (_used(process) - used))
        assert answer.status == 200, answer.text
    return {"ms": median(clock), "cpu_ms": sum(processor) / times}


async def left_open(console: ServedConsole, seconds: float) -> float:
    """Returns the part of a core that the console takes while the list of units is open."""
    process, end = psutil.Process(console.pid), time.monotonic() + seconds
    used, begun = _used(process), time.monotonic()
    while time.monotonic() < end:
        await console.ask("/app/units", HX_Request="true")
        await asyncio.sleep(ASKED_EVERY_S)
    return (_used(process) - used) / (time.monotonic() - begun)


async def measure(units: int, pages: int, seconds: float) -> dict[str, object]:
    """Returns all figures."""
    with tempfile.TemporaryDirectory() as folder, services.moto(Path(folder) / "moto.log") as address:
        endpoint, file = address(), Path(folder) / "app.properties"
        await asyncio.to_thread(file.write_text, SETTINGS.format(endpoint=endpoint))
        await asyncio.to_thread(write, endpoint, units)
        async with served_console(file) as console:
            whole = await read_whole(console, units)
            process = psutil.Process(console.pid)
            return {
                "first_reading_s": whole,
                "first_reading_cpu_s": _used(process),
                "pages": {name: await asked(console, path, pages) for name, path in PAGES.items()},
                "filters": {name: await asked(console, path, pages) for name, path in FILTERS.items()},
                "open_core": await left_open(console, seconds) if seconds else 0.0,
                "rss_mb": process.memory_info().rss / 2**20,
            }


def _used(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    """Measures, and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--open", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    warn_unless_quiet()
    os.environ.update(AWS_ACCESS_KEY_ID="nobody", AWS_SECRET_ACCESS_KEY="nobody", AWS_EC2_METADATA_DISABLED="true")
    found = asyncio.run(measure(arguments.units, arguments.pages, arguments.open))
    if arguments.json:
        print(json.dumps(found))
        return
    print(f"first reading of {arguments.units:,} units: {found['first_reading_s']:.1f} s; {found['rss_mb']:.0f} MB")
    for kind, aim in (("pages", AIM_PAGE_MS), ("filters", AIM_FILTER_MS)):
        for name, figures in found[kind].items():  # type: ignore[attr-defined]
            print(f"{kind}, {name}: {figures['ms']:.0f} ms (aim {aim}), processor {figures['cpu_ms']:.0f} ms")
    print(f"with a page open: {100 * float(str(found['open_core'])):.2f} % of a core (aim {100 * AIM_CORE:g} %)")


if __name__ == "__main__":
    main()
