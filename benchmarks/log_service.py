"""Measures the log as daemons share it: what an append costs its owner.

Clients in processes of their own append units of five deltas and fifteen signatures, as many as a call in
steady state brings, through real sockets to an owner in this process. The baseline is the same appends made by as many
shards in the owner's own process, in the same run. The log's store makes the bytes of each batch and drops them, so
what is measured is the owner: appends and units a second, CPU of the owner's process a unit, median time of an append.

With ``--partitions`` the same appends go to several owners at once, each of a log partition of its own in a process of
its own, as shards of that process make them. They share nothing but the machine, so what they lose against one owner is
what the machine's processors lack. docs/scale.md reckons with these figures.

``benchmarks/failover.py`` measures how long a change of owners takes.

    python benchmarks/log_service.py [--units N] [--clients N ...] [--partitions N ...] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from runs.machine import warn_unless_quiet

from kainite.base.position import Position
from kainite.base.process_identity import this_process
from kainite.log.client import LogClient
from kainite.log.contract import Slot
from kainite.log.format.batch_codec import encode
from kainite.log.format.entry import SNAPSHOT_PART, Batch, ControlMeta, Entry, EntryKind
from kainite.owner.owner import LogOwner
from kainite.peers.access import Access
from kainite.peers.access_files import AccessFiles
from kainite.peers.address import OwnerAddress, from_text
from kainite.peers.connection.introduction import Introduction, Key
from kainite.peers.held_files import HeldFiles
from kainite.peers.rights import OF_THE_LOG
from kainite.peers.sharing.connection import OwnerConnection, connected
from kainite.peers.sharing.conversation import MemberName
from kainite.peers.sharing.lease_holders import LeaseHolders
from kainite.peers.sharing.shared_log import SharedLog, open_shared_log
from kainite.settings import LogSettings, UowSettings
from kainite.store.memory import MemoryStore
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.packing import Piece, pack
from kainite.uow.touches import Touched

UNITS_PER_APPEND = 10
SHARDS_PER_CLIENT = 4
SHARDS_OF_AN_OWNER = 128
"""Shards that keep an owner busy: an append waits for others up to 20 ms, so a few shards would wait for the clock."""
CLIENT = Introduction("client", "client", "benchmark")
SETTINGS = LogSettings(table="log", owner="owner", enabled=True, backlog_units=10_000_000)
LOG = f"{SETTINGS.table}/{SETTINGS.partition}"


_NO_ENTRY = Entry(EntryKind.CONTROL, ControlMeta(SNAPSHOT_PART))


class DroppingStore(MemoryStore):
    """A store that costs the bytes of a batch, and nothing else."""

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        encode(batch)
        return super().put_batch(partition, replace(batch, entries=(_NO_ENTRY,) * len(batch.entries)), nonce)


@dataclass(frozen=True)
class Result:
    """One measurement; times are in milliseconds, CPU is the owner's process alone."""

    clients: int
    units_per_second: float
    cpu_us_per_unit: float
    append_p50_ms: float


@dataclass(frozen=True)
class OwnersResult:
    """What so many owners took together.

    Attributes:
        partitions: how many log partitions there were, each with an owner in a process of its own.
        units_per_second: of all owners, from the first append of any to the last answer of all.
        cpu_us_per_unit: processor time of all owners' processes.
        append_p50_ms: the median of all appends.
    """

    partitions: int
    units_per_second: float
    cpu_us_per_unit: float
    append_p50_ms: float


def units(shard: str, first: int) -> list[Fragment]:
    """Returns the units of one append, packed as the holder of a shard does it."""
    numbers = range(first, first + UNITS_PER_APPEND)
    pieces = pack([_deltas(number) for number in numbers])
    return [_unit(f"{shard}-{number}", piece) for number, piece in zip(numbers, pieces, strict=True)]


def _deltas(number: int) -> tuple[Delta, ...]:
    return tuple(
        Delta("sales.order_line", Operation.INSERT, {"order_id": number, "line": line},
              {"order_id": number, "line": line, "item": f"item {line}", "amount": 12.5, "note": "x" * 60}, {}, line)
        for line in range(5)
    )  # fmt: skip


def _unit(name: str, piece: Piece | None) -> Fragment:
    signatures = [hash((name, place)) % 2**64 for place in range(15)]
    touched = Touched(frozenset(signatures[:10]), frozenset(signatures[10:]), ("sales.order_line",))
    return Fragment(name, (), touched, (UnitEnd(5),), identities=tuple(range(5)), piece=piece)


def calls_of(client: int, appends: int, shards: int = SHARDS_PER_CLIENT) -> dict[str, list[list[Fragment]]]:
    """Returns what a client appends, by shard."""
    names = [f"shardId-{client}-{place}" for place in range(shards)]
    return {shard: [units(shard, UNITS_PER_APPEND * number) for number in range(appends)] for shard in names}


async def append_all(log: LogClient, calls: dict[str, list[list[Fragment]]]) -> list[float]:
    """Makes the appends of each shard one after another; returns the seconds that each took."""
    took: list[float] = []

    async def consume(shard: str) -> None:
        for number, fragments in enumerate(calls[shard], 1):
            began = time.perf_counter()
            after = Position(number - 1) if number > 1 else None
            await log.append(shard, Position(number), Position(number), fragments, after)
            took.append(time.perf_counter() - began)

    await asyncio.gather(*(consume(shard) for shard in calls))
    return took


@contextlib.asynccontextmanager
async def _conversing(address: OwnerAddress, generation: int, worker: str) -> AsyncIterator[OwnerConnection]:
    name = MemberName(LOG, "s", worker, this_process().as_text())
    async with connected(address, name, generation, lambda _: None, introduction=CLIENT) as connection:
        conversing = asyncio.create_task(connection.converse())
        try:
            opening = asyncio.create_task(connection.opened())
            await asyncio.wait({opening, conversing}, return_when=asyncio.FIRST_COMPLETED)
            opening.cancel()
            if conversing.done():
                await conversing
            yield connection
        finally:
            conversing.cancel()
            await asyncio.gather(conversing, return_exceptions=True)


async def client(address: str, number: int, appends: int) -> None:
    """Acts as one client: waits for a line, appends, prints the seconds of each append."""
    found, calls = from_text(address), calls_of(number, appends)
    assert found is not None
    async with _conversing(found, 1, f"client{number}") as connection:
        await _told_to_go()
        took = await append_all(connection, calls)
    print(json.dumps(took), flush=True)


async def owner_of(partition: int, appends: int) -> None:
    """Acts as one owner: waits for a line, appends, prints its processor time and the seconds of each append."""
    calls = calls_of(partition, appends, SHARDS_OF_AN_OWNER)
    async with _owner(DroppingStore(), str(partition)) as (_, owner):
        await _told_to_go()
        cpu = time.process_time()
        took = await append_all(owner, calls)
        cpu = time.process_time() - cpu
    print(json.dumps({"cpu_s": cpu, "took": took}), flush=True)


async def _told_to_go() -> None:
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


@contextlib.asynccontextmanager
async def _owner(store: DroppingStore, partition: str) -> AsyncIterator[tuple[SharedLog, LogOwner]]:
    async with opening(store, partition) as (log, _):
        await log.reached()
        assert log.owner is not None
        yield log, log.owner


def opening(
    store: DroppingStore, partition: str
) -> contextlib.AbstractAsyncContextManager[tuple[SharedLog, asyncio.Task[None]]]:
    """Opens the log for clients of one user, who hold all leases."""
    access = Access(held=HeldFiles(AccessFiles(users={CLIENT.user: Key(CLIENT.secret, OF_THE_LOG)})))
    holders = LeaseHolders(lambda shard: f"client{shard.split('-')[1]}", time.monotonic)
    settings = replace(SETTINGS, partition=partition)
    return open_shared_log(store, settings, UowSettings(), "s", holders=holders, access=access)


async def measure(clients: int, total: int) -> Result:
    """Measures appends of clients in other processes; none: of as many shards as one client has in this process."""
    async with _owner(DroppingStore(), SETTINGS.partition) as (log, owner):
        appends = total // UNITS_PER_APPEND // SHARDS_PER_CLIENT // max(clients, 1)
        if clients:
            return await _remote(log.address, clients, appends)
        calls = calls_of(0, appends)
        began, cpu = time.perf_counter(), time.process_time()
        took = await append_all(owner, calls)
        return _result(0, took, time.perf_counter() - began, time.process_time() - cpu)


async def _remote(address: str, clients: int, appends: int) -> Result:
    given = ["--client", address, "--appends", str(appends)]
    async with _ready([[*given, "--number", str(number)] for number in range(clients)]) as running:
        began, cpu = time.perf_counter(), time.process_time()
        took = [seconds for answer in await _answers(running) for seconds in answer]
        return _result(clients, took, time.perf_counter() - began, time.process_time() - cpu)


async def measure_partitions(partitions: int, total: int) -> OwnersResult:
    """Measures appends to the owners of so many log partitions, about ``total`` units for each of them."""
    given = ["--appends", str(max(1, total // UNITS_PER_APPEND // SHARDS_OF_AN_OWNER))]
    async with _ready([["--partition", str(partition), *given] for partition in range(partitions)]) as running:
        began = time.perf_counter()
        answers = await _answers(running)
        seconds = time.perf_counter() - began
    took = [each for answer in answers for each in answer["took"]]
    made, cpu = len(took) * UNITS_PER_APPEND, sum(answer["cpu_s"] for answer in answers)
    return OwnersResult(partitions, made / seconds, cpu / made * 1e6, statistics.median(took) * 1e3)


@contextlib.asynccontextmanager
async def _ready(commands: Sequence[Sequence[str]]) -> AsyncIterator[list[asyncio.subprocess.Process]]:
    """Starts this program once for each command; yields the processes when all of them are ready, and ends them."""
    running: list[asyncio.subprocess.Process] = []
    try:
        for command in commands:
            running.append(
                await asyncio.create_subprocess_exec(
                    sys.executable, __file__, *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=1 << 26
                )
            )
        for process in running:
            assert process.stdout is not None
            await process.stdout.readline()
        yield running
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _answers(running: Sequence[asyncio.subprocess.Process]) -> list[Any]:
    """Lets all processes go, and returns what each answers."""
    for process in running:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
    lines = [await process.stdout.readline() for process in running if process.stdout is not None]
    return [json.loads(line) for line in lines]


def _result(clients: int, took: Sequence[float], seconds: float, cpu: float) -> Result:
    made = len(took) * UNITS_PER_APPEND
    return Result(clients, made / seconds, cpu / made * 1e6, statistics.median(took) * 1e3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=20_000, help="units of each measurement")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--partitions", type=int, nargs="*", default=[1, 2, 4], help="numbers of owners at once")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--partition", type=int, help=argparse.SUPPRESS)
    for hidden in ("number", "appends"):
        parser.add_argument(f"--{hidden}", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        asyncio.run(client(options.client, options.number, options.appends))
    elif options.partition is not None:
        asyncio.run(owner_of(options.partition, options.appends))
    else:
        warn_unless_quiet()
        _report(options)


def _report(options: argparse.Namespace) -> None:
    results = [asyncio.run(measure(clients, options.units)) for clients in (0, *options.clients)]
    owners = [asyncio.run(measure_partitions(partitions, options.units)) for partitions in options.partitions]
    if options.json:
        found = {"appends": [asdict(result) for result in results], "owners": [asdict(result) for result in owners]}
        print(json.dumps(found))
        return
    for result in results:
        print(_line(f"{result.clients} clients" if result.clients else "in the owner's process", result))
    for result_of_owners in owners:
        print(_line(f"owners at once: {result_of_owners.partitions}", result_of_owners))


def _line(what: str, result: Result | OwnersResult) -> str:
    return (
        f"{what:<24}{result.units_per_second:>9,.0f} units/s{result.cpu_us_per_unit:>8.0f} µs of the owner a unit"
        f"{result.append_p50_ms:>9.1f} ms an append (median)"
    )


if __name__ == "__main__":
    main()
