"""Times the commands of a person who looks, with many units in the log: they are to answer in half a second.

The log is written to moto, in a process of its own, as an owner leaves it: every unit in progress, and the summary in
HEAD. Each command runs as a process, several times; the best wall time and its processor time are told. The processor
time is the machine's share of the answer: it hardly changes with what else runs.

    python benchmarks/commands.py [--units N] [--rounds N] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import boto3
from runs.machine import warn_unless_quiet

from kainite.base.clock import epoch_ms
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.format.entry import Batch, Entry, EntryKind, UnitMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.summary import DurableMarks, OwnersFigures, ShardFigure, as_text, summary_of
from kainite.owner.mount import mount
from kainite.store.dynamodb import DynamoDBStore
from kainite.uow.touches import Touched
from kainite_demo.services import moto

AIM_S = 0.5
BATCH = 1_000
SHARD = "shardId-000000000000"

COMMANDS: dict[str, tuple[str, ...]] = {
    "--help": ("--help",),
    "status": ("status", "-p", "{file}"),
    "log status": ("log", "status", "-p", "{file}", "--wait", "0"),
    "log show --limit 20": ("log", "show", "-p", "{file}", "--limit", "20"),
    "leases": ("leases", "-p", "{file}"),
}


@dataclass(frozen=True)
class Timed:
    """The best of several runs.

    Attributes:
        seconds: wall time.
        processor: processor time, of all threads.
    """

    seconds: float
    processor: float


def fill(endpoint: str, units: int) -> float:
    """Writes the application's tables; returns the seconds that the owner takes to make its summary."""
    client = boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1")
    leases = LeaseTable(client, "app")
    leases.create()
    leases.put_new(Lease(SHARD, owner="w"))
    store, state = DynamoDBStore(client, "app-log"), FoldedLog()
    store.create()
    held = mount(store, "0", "w", 3_600.0)
    marks = DurableMarks(state)
    for at in range(0, units, BATCH):
        entries = tuple(_unit(number) for number in range(at, min(at + BATCH, units)))
        assert store.put_batch("0", Batch(at, held.generation, epoch_ms(), entries), f"n{at}") is None
        for tid, entry in enumerate(entries, at):
            state.apply(tid, entry, epoch_ms())
    began = time.perf_counter()
    figures = OwnersFigures(epoch_ms(), marks.now(state, units), shards=(ShardFigure(SHARD, 0.5),))
    text = as_text(summary_of(state, figures))
    took = time.perf_counter() - began
    held.renew(units - 1, summary=text)
    return took


def _unit(number: int) -> Entry:
    meta = UnitMeta(f"T-{number}", 1, (SHARD,), arrived_ms=epoch_ms())
    data = b'[{"table":"orders","op":"upsert","key":{"id":%d},"after":{"id":%d,"v":1}}]' % (number, number)
    return Entry(EntryKind.UNIT, meta, Touched(frozenset({number})), data)


def timed(arguments: Sequence[str], environment: dict[str, str], rounds: int) -> Timed:
    """Returns the best wall and processor times of a command."""
    runs = [_run(arguments, environment) for _ in range(rounds)]
    return Timed(min(run.seconds for run in runs), min(run.processor for run in runs))


def _run(arguments: Sequence[str], environment: dict[str, str]) -> Timed:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "kainite", *arguments], env=environment, stdout=subprocess.DEVNULL, check=False
    )
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Timed(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def measure(units: int, rounds: int) -> dict[str, Timed]:
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    # Installed packages have compiled modules; without them every start compiles them anew.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.update({name: environment[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")})
    with tempfile.TemporaryDirectory() as folder, moto(Path(folder) / "moto") as ready:
        endpoint = ready()
        summary_s = fill(endpoint, units)
        file = Path(folder) / "app.properties"
        file.write_text(
            "applicationName = app\nstreamName = s\nregionName = us-east-1\nunitsOfWork = true\n"
            f"dynamoDBEndpoint = {endpoint}\nkinesisEndpoint = {endpoint}\n"
        )
        found = {"the owner's summary": Timed(summary_s, summary_s)}
        for name, words in COMMANDS.items():
            arguments = [word.format(file=file) for word in words]
            _run(arguments, environment)  # compiles
            found[name] = timed(arguments, environment, rounds)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warn_unless_quiet()
    found = measure(options.units, options.rounds)
    if options.json:
        print(json.dumps({name: asdict(value) for name, value in found.items()}))
        return
    print(f"{options.units:,} units in the log; best of {options.rounds}; aim {AIM_S} s")
    for name, value in found.items():
        print(f"{name:<24}{value.seconds:8.3f} s wall{value.processor:8.3f} s processor")


if __name__ == "__main__":
    main()
