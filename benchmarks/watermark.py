"""Measures units that end by watermark: how long they wait, and what they cost the log's owner.

*Latency*: units of five deltas whose records are spread over shards, an owner, and a reader for each shard that does as
a daemon's does: it reads every ``--read`` seconds, and once more after records while the owner asks; it appends what
has arrived, and reports how far it is, once a second and when the owner asks. A record's arrival is the time at which
it was made; a part's arrival is that of the last record that was read with it. What is measured is the time from a
unit's last record until its UNIT entry is decided, less the grace: the aim is one reading of the slowest shard. *busy*:
records come through all shards; *idle*: through the first one alone, and the others are empty.

*CPU*: the same units go, once with ends (``uowEnd = marker``) and once without, through one owner each in the same run;
the figure is the process's microseconds a delta. The log's store makes the bytes of each batch and drops them.

    python benchmarks/watermark.py [--shards N ...] [--seconds S] [--read S] [--units N] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace

from log_service import SETTINGS, DroppingStore
from runs.machine import warn_unless_quiet

from kainite.base.clock import boot_seconds
from kainite.base.position import Position
from kainite.base.waiting import wait_until_set
from kainite.kinesis.read.polling import SOONEST_S
from kainite.log.client import ReadingReport
from kainite.owner.mount import mount
from kainite.owner.owner import LogOwner
from kainite.owner.serving import serve_log
from kainite.settings import UowEnd, UowOrder, UowSettings
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.touches import Touched

GRACE_S = 1.0
REPORT_S = 1.0
UNITS_A_SECOND = 20
DELTAS = 5
WATERMARK = UowSettings(end=UowEnd.WATERMARK, order=UowOrder.TIME, grace=GRACE_S)


@dataclass(frozen=True)
class Latency:
    """The time that units waited beyond the grace, milliseconds."""

    shards: int
    kind: str
    units: int
    median_ms: float
    p99_ms: float


@dataclass
class Shard:
    """A shard, and how far its reader is."""

    name: str
    arrived: list[tuple[int, Fragment]] = field(default_factory=list)
    last_ms: int | None = None
    tip: float | None = None
    reads: int = 0
    wanted: asyncio.Event = field(default_factory=asyncio.Event)


def part(uow: str, row: int, now_ms: int) -> Fragment:
    """Returns one delta of a unit that is committed, and arrives, now."""
    delta = Delta("t", Operation.UPSERT, {"id": row}, {"id": row, "note": "x" * 60}, {}, row % DELTAS)
    return Fragment(uow, (delta,), Touched(frozenset({row})), time=now_ms * 1000000, arrived_ms=now_ms)


async def read(owner: LogOwner, shard: Shard, every: float) -> None:
    """Reads a shard until cancelled."""
    due = time.monotonic() + random.random() * every
    while True:
        await asyncio.sleep(due - time.monotonic())
        due += every
        if await read_once(owner, shard) and every > SOONEST_S:
            shard.wanted.clear()
            await asyncio.sleep(SOONEST_S)
            if await wait_until_set(shard.wanted, max(0.0, due - time.monotonic())):
                await read_once(owner, shard)


async def read_once(owner: LogOwner, shard: Shard) -> bool:
    """Appends what has arrived in a shard; returns whether anything has."""
    asked, found, shard.arrived = boot_seconds(), shard.arrived, []
    if not found:
        shard.tip = asked
        return False
    shard.reads += 1
    latest = max(ms for ms, _ in found)
    fragments = [replace(fragment, arrived_ms=latest) for _, fragment in found]
    at, after = Position(shard.reads), await owner.position(shard.name)
    await owner.append(shard.name, at, at, fragments, after)
    shard.last_ms = latest
    return True


async def report(owner: LogOwner, shards: Sequence[Shard]) -> None:
    """Reports until cancelled, as a daemon does."""

    def now() -> None:
        tips = {shard.name: boot_seconds() - shard.tip for shard in shards if shard.tip is not None}
        arrived = {shard.name: shard.last_ms for shard in shards if shard.last_ms is not None}
        owner.report(ReadingReport(frozenset(shard.name for shard in shards), {}, tips, arrived))

    def asked() -> None:
        for shard in shards:
            shard.wanted.set()
        now()

    with owner.asking(asked):
        while True:
            now()
            await asyncio.sleep(REPORT_S)


@asynccontextmanager
async def owned(rules: UowSettings) -> AsyncIterator[LogOwner]:
    """Gives the owner of a log that is stored nowhere."""
    store, settings = DroppingStore(), replace(SETTINGS, poll=0.25)
    mounted = mount(store, settings.partition, settings.owner, settings.lease)
    async with serve_log(store, settings, rules, mounted) as owner:
        yield owner


async def latency(count: int, kind: str, seconds: float, every: float) -> Latency:
    """Returns how long units wait with so many shards."""
    shards = [Shard(f"s{number}") for number in range(count)]
    made: dict[str, float] = {}
    ended: dict[str, float] = {}
    async with owned(WATERMARK) as owner:
        running = [asyncio.create_task(read(owner, shard, every)) for shard in shards]
        running.append(asyncio.create_task(report(owner, shards)))
        until, number = time.monotonic() + seconds, 0
        while time.monotonic() < until or len(ended) < len(made):
            if time.monotonic() < until:
                number += 1
                uow, now_ms = f"T-{number}", int(time.time() * 1000)
                for place in range(DELTAS):
                    shard = random.choice(shards) if kind == "busy" else shards[0]
                    shard.arrived.append((now_ms, part(uow, number * DELTAS + place, now_ms)))
                made[uow] = time.monotonic()
            await asyncio.sleep(1 / UNITS_A_SECOND)
            now = time.monotonic()
            for unit in owner.state.units.values():
                ended.setdefault(unit.uow, now)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    waited = sorted((ended[uow] - made[uow] - GRACE_S) * 1000 for uow in made)
    return Latency(count, kind, len(waited), statistics.median(waited), waited[int(len(waited) * 0.99)])


async def cpu(rules: UowSettings, units: int) -> float:
    """Returns the microseconds of this process that a delta takes, from its append until its unit is dispatched."""
    now_ms, calls = int(time.time() * 1000), []
    for number in range(units):
        deltas = tuple(
            Delta("t", Operation.UPSERT, {"id": number, "line": line}, {"note": "x" * 60}, {}, line)
            for line in range(DELTAS)
        )
        whole = Fragment(f"T-{number}", deltas, Touched(frozenset(range(number * DELTAS, number * DELTAS + DELTAS))))
        ends = (UnitEnd(DELTAS),) if rules.end is UowEnd.MARKER else ()
        told = now_ms * 1_000_000 if rules.end is UowEnd.WATERMARK else None
        calls.append(replace(whole, deltas=(), ends=ends, time=told, arrived_ms=now_ms))
    async with owned(rules) as owner:
        began = time.process_time()
        for first in range(0, units, 10):
            at, after = Position(first + 1), await owner.position("s0")
            await owner.append("s0", at, at, calls[first : first + 10], after)
        owner.report(ReadingReport(frozenset({"s0"}), {}, {}, {"s0": now_ms + 60_000}))
        while len(owner.state.units) < units:  # noqa: ASYNC110 - nothing signals it
            await asyncio.sleep(0.01)
        return (time.process_time() - began) / units / DELTAS * 1e6


async def measured(given: argparse.Namespace) -> dict[str, object]:
    """Returns everything that is measured."""
    found = [
        asdict(await latency(count, kind, given.seconds, given.read))
        for count in given.shards
        for kind in ("busy", "idle")
    ]
    costs: dict[str, list[float]] = {"marker": [], "watermark": []}
    for _ in range(3):
        costs["marker"].append(await cpu(UowSettings(), given.units))
        costs["watermark"].append(await cpu(WATERMARK, given.units))
    return {"latency": found, "cpu_us_per_delta": {name: statistics.median(each) for name, each in costs.items()}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 4, 32])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--read", type=float, default=1.0)
    parser.add_argument("--units", type=int, default=5_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    warn_unless_quiet()
    found = asyncio.run(measured(given))
    if given.json:
        print(json.dumps(found))
        return
    for one in found["latency"]:  # type: ignore[attr-defined]
        waited = f"{one['median_ms']:.0f} ms beyond the grace (median), {one['p99_ms']:.0f} ms (99th percentile)"
        print(f"{one['shards']:3} shards, {one['kind']}: {one['units']} units waited {waited}")
    print(f"CPU a delta, us: {found['cpu_us_per_delta']}")


if __name__ == "__main__":
    main()
