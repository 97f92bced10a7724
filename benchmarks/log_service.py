"""Measures the log as daemons share it: what an append costs its owner.

Clients in processes of their own append units of five deltas and fifteen signatures, as many as a call in
steady state brings, through real sockets to an owner in this process. The baseline is the same appends made by as many
shards in the owner's own process, in the same run. The log's store makes the bytes of each batch and drops them, so
what is measured is the owner: appends and units a second, CPU of the owner's process a unit, median time of an append.

``benchmarks/failover.py`` measures how long a change of owners takes.

    python benchmarks/log_service.py [--units N] [--clients N ...] [--json]
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

from runs.machine import warn_unless_quiet

from kainite.base.position import Position
from kainite.base.process_identity import this_process
from kainite.log.client import LogClient
from kainite.log.contract import Slot
from kainite.log.format.batch_codec import encode
from kainite.log.format.entry import SNAPSHOT_PART, Batch, ControlMeta, Entry, EntryKind
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


def calls_of(client: int, appends: int) -> dict[str, list[list[Fragment]]]:
    """Returns what a client appends, by shard."""
    shards = [f"shardId-{client}-{place}" for place in range(SHARDS_PER_CLIENT)]
    return {shard: [units(shard, UNITS_PER_APPEND * number) for number in range(appends)] for shard in shards}


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
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        took = await append_all(connection, calls)
    print(json.dumps(took), flush=True)


def opening(store: DroppingStore) -> contextlib.AbstractAsyncContextManager[tuple[SharedLog, asyncio.Task[None]]]:
    """Opens the log for clients of one user, who hold all leases."""
    access = Access(held=HeldFiles(AccessFiles(users={CLIENT.user: Key(CLIENT.secret, OF_THE_LOG)})))
    holders = LeaseHolders(lambda shard: f"client{shard.split('-')[1]}", time.monotonic)
    return open_shared_log(store, SETTINGS, UowSettings(), "s", holders=holders, access=access)


async def measure(clients: int, total: int) -> Result:
    """Measures appends of clients in other processes; none: of as many shards as one client has in this process."""
    async with opening(DroppingStore()) as (log, _):
        await log.reached()
        owner = log.owner
        assert owner is not None
        appends = total // UNITS_PER_APPEND // SHARDS_PER_CLIENT // max(clients, 1)
        if clients:
            return await _remote(log.address, clients, appends)
        calls = calls_of(0, appends)
        began, cpu = time.perf_counter(), time.process_time()
        took = await append_all(owner, calls)
        return _result(0, took, time.perf_counter() - began, time.process_time() - cpu)


async def _remote(address: str, clients: int, appends: int) -> Result:
    command = [sys.executable, __file__, "--client", address, "--appends", str(appends), "--number"]
    running = [
        await asyncio.create_subprocess_exec(
            *command, str(number), stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=1 << 26
        )
        for number in range(clients)
    ]
    try:
        for process in running:
            assert process.stdout is not None
            await process.stdout.readline()
        began, cpu = time.perf_counter(), time.process_time()
        took: list[float] = []
        for process in running:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
        for process in running:
            assert process.stdout is not None
            took += json.loads(await process.stdout.readline())
        return _result(clients, took, time.perf_counter() - began, time.process_time() - cpu)
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _result(clients: int, took: Sequence[float], seconds: float, cpu: float) -> Result:
    made = len(took) * UNITS_PER_APPEND
    return Result(clients, made / seconds, cpu / made * 1e6, statistics.median(took) * 1e3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=20_000, help="units of each measurement")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--client", help=argparse.SUPPRESS)
    for hidden in ("number", "appends"):
        parser.add_argument(f"--{hidden}", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warn_unless_quiet()
    if options.client:
        asyncio.run(client(options.client, options.number, options.appends))
    else:
        _report(options)


def _report(options: argparse.Namespace) -> None:
    results = [asyncio.run(measure(clients, options.units)) for clients in (0, *options.clients)]
    if options.json:
        print(json.dumps({"appends": [asdict(result) for result in results]}))
        return
    for result in results:
        who = f"{result.clients} clients" if result.clients else "in the owner's process"
        print(
            f"{who:<24}{result.units_per_second:>9,.0f} units/s{result.cpu_us_per_unit:>8.0f} µs of the owner a unit"
            f"{result.append_p50_ms:>9.1f} ms an append (median)"
        )


if __name__ == "__main__":
    main()
