"""Measures the log as daemons share it: what an append costs its owner, and how long a change of owners takes.

*Appends*: clients in processes of their own append units of five deltas and fifteen signatures, as many as a call in
steady state brings, through real sockets to an owner in this process. The baseline is the same appends made by as many
shards in the owner's own process, in the same run. The log's store makes the bytes of each batch and drops them, so
what is measured is the owner: appends and units a second, CPU of the owner's process a unit, median time of an append.

*Failover* (``--kills``): members in processes of their own share a log in moto's DynamoDB. The owner is killed again
and again; the time from SIGKILL until another one has answered a question on a new connection is measured.

    python benchmarks/log_service.py [--units N] [--clients N ...] [--kills N] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kainite.base.errors import KainiteError
from kainite.base.position import Position
from kainite.base.process_identity import this_process
from kainite.log.client import LogClient
from kainite.log.format.batch_codec import encode
from kainite.log.format.entry import Batch
from kainite.log.service.sharing.address import OwnerAddress, from_text
from kainite.log.service.sharing.connection import OwnerConnection, connected
from kainite.log.service.sharing.conversation import Conversation
from kainite.log.service.sharing.shared_log import open_shared_log
from kainite.log.store.contract import Slot
from kainite.log.store.dynamodb import DynamoDBStore
from kainite.log.store.memory import MemoryStore, without_data
from kainite.settings import LogSettings, UowSettings
from kainite.uow.delta import Delta, Operation, UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.packing import Piece, pack
from kainite_demo import services

UNITS_PER_APPEND = 10
SHARDS_PER_CLIENT = 4
SETTINGS = LogSettings(table="log", owner="owner", enabled=True, backlog_units=10_000_000)
FAILOVER = replace(SETTINGS, lease=10.0, heartbeat=3.0)
LOG = f"{SETTINGS.table}/{SETTINGS.partition}"
LIMIT_S = 60.0


class DroppingStore(MemoryStore):
    """A store that costs the bytes of a batch, and nothing else."""

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        encode(batch)
        return super().put_batch(partition, without_data(batch), nonce)


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
    return Fragment(
        name, (), frozenset(signatures[:10]), frozenset(signatures[10:]), (UnitEnd(5),), identities=tuple(range(5)),
        tables=("sales.order_line",), piece=piece,
    )  # fmt: skip


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
            await log.append(shard, Position(number), Position(number), fragments)
            took.append(time.perf_counter() - began)

    await asyncio.gather(*(consume(shard) for shard in calls))
    return took


@contextlib.asynccontextmanager
async def _conversing(address: OwnerAddress, generation: int, worker: str) -> AsyncIterator[OwnerConnection]:
    conversation = Conversation(LOG, "s", worker, this_process().as_text(), generation)
    async with connected(address, conversation, lambda: None) as connection:
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


async def measure(clients: int, total: int) -> Result:
    """Measures appends of clients in other processes; none: of as many shards as one client has in this process."""
    async with open_shared_log(DroppingStore(), SETTINGS, UowSettings(), "s") as (log, _):
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


async def member(endpoint: str, worker: str) -> None:
    """Takes part in a log in DynamoDB until it is killed."""
    store = DynamoDBStore(services.dynamodb_client(endpoint), SETTINGS.table)
    async with open_shared_log(store, replace(FAILOVER, owner=worker), UowSettings(), "s") as (log, running):
        await log.reached()
        print("reached", flush=True)
        await running


async def failover(kills: int) -> list[float]:
    """Returns the seconds from each kill of the owner until another one answers."""
    with tempfile.TemporaryDirectory() as folder, services.moto(Path(folder) / "moto.log") as address:
        endpoint = address()
        store = DynamoDBStore(services.dynamodb_client(endpoint), SETTINGS.table)
        store.create()
        with _members(endpoint) as members:
            names = iter(range(1, kills + 4))
            for _ in range(3):
                members.start(f"w{next(names)}")
            await _answering(store, 0)
            took = []
            for _ in range(kills):
                head = store.read_head("0")
                assert head is not None
                began = time.perf_counter()
                members.kill(head.owner)
                await _answering(store, head.generation)
                took.append(time.perf_counter() - began)
                members.start(f"w{next(names)}")
            return took


async def _answering(store: DynamoDBStore, before: int) -> None:
    """Waits until an owner of a later generation answers a question."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        head = store.read_head("0")
        address = None if head is None else from_text(head.address)
        if head is not None and address is not None and head.generation > before:
            with contextlib.suppress(KainiteError, OSError):
                async with _conversing(address, head.generation, "watcher") as connection:
                    await connection.position("s0")
                    return
        await asyncio.sleep(0.005)
    raise TimeoutError(f"no owner answered within {LIMIT_S:g} s")


class _Members:
    """Processes that share a log."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, worker: str) -> None:
        """Starts a member, and waits until it owns the log or follows its owner."""
        command = [sys.executable, __file__, "--member", self._endpoint, "--worker", worker]
        self._running[worker] = process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        process.stdout.readline()

    def kill(self, worker: str) -> None:
        process = self._running.pop(worker)
        process.send_signal(signal.SIGKILL)
        process.communicate()

    def end(self) -> None:
        for worker in list(self._running):
            self.kill(worker)


@contextlib.contextmanager
def _members(endpoint: str) -> Iterator[_Members]:
    members = _Members(endpoint)
    try:
        yield members
    finally:
        members.end()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=20_000, help="units of each measurement")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    for hidden in ("client", "member", "worker"):
        parser.add_argument(f"--{hidden}", help=argparse.SUPPRESS)
    for hidden in ("number", "appends"):
        parser.add_argument(f"--{hidden}", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        asyncio.run(client(options.client, options.number, options.appends))
    elif options.member:
        asyncio.run(member(options.member, options.worker))
    else:
        _report(options)


def _report(options: argparse.Namespace) -> None:
    results = [asyncio.run(measure(clients, options.units)) for clients in (0, *options.clients)]
    kills = sorted(asyncio.run(failover(options.kills))) if options.kills else []
    if options.json:
        print(json.dumps({"appends": [asdict(result) for result in results], "failover_s": kills}))
        return
    for result in results:
        who = f"{result.clients} clients" if result.clients else "in the owner's process"
        print(
            f"{who:<24}{result.units_per_second:>9,.0f} units/s{result.cpu_us_per_unit:>8.0f} µs of the owner a unit"
            f"{result.append_p50_ms:>9.1f} ms an append (median)"
        )
    if kills:
        p50, p99 = kills[len(kills) // 2], kills[min(len(kills) - 1, int(len(kills) * 0.99))]
        print(f"failover over {len(kills)} kills: p50 {p50:.2f} s, p99 {p99:.2f} s, most {kills[-1]:.2f} s")


if __name__ == "__main__":
    main()
