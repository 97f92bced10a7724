"""The daemon: one lease keeper, one log owner, and a consumer for each shard whose lease is held.

Start: the log is mounted and the target's catalogue read, then leases are taken; a daemon that waits for a
log that another one owns holds no shard. Whatever fails before that ends the daemon with an error.

Stop, on the first SIGTERM or SIGINT: every child finishes its call, is told ``shutdownRequested`` and
``leaseLost`` and ends, all within the grace of the settings; those that are not done by then are
terminated. Then the leases are given back, and the log is released, so that others need not wait
for either to run out. A second signal kills the children and gives up at once.

What ends the daemon by itself: another owner fenced the log (nothing may be appended any more), the log
or the lease table cannot be used. A child, a shard or the network failing never does.

What a crash leaves behind: leases and a log partition that run out, children whose input ends, and nothing
that was acknowledged and is not durable (:mod:`kainite.shard_call`).
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NoReturn

from kainite import aws, memory
from kainite.errors import KainiteError, LogHeldError
from kainite.fleet.membership import Membership
from kainite.kinesis.client import StreamClient
from kainite.kinesis.retrieval import polling
from kainite.leases.keeper import Gained, HandingOver, HeldLease, LeaseKeeper, Lost
from kainite.leases.table import LeaseTable
from kainite.logs import event
from kainite.settings import Settings
from kainite.shard_call import UnitsOfWork
from kainite.shard_consumer import Parts, ShardConsumer

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    from kainite.log.owner import LogOwner

logger = logging.getLogger(__name__)

THREADS = 256
"""The most calls to AWS at a time: one a shard, and a few more. Threads are made when they are needed."""


def run(settings: Settings) -> int:
    """Run until a signal; returns the exit status.

    Raises:
        KainiteError: what ended the daemon, or kept it from starting.
    """
    memory.share_one_arena()
    return asyncio.run(_run(settings))


async def supervise(settings: Settings, stop: asyncio.Event) -> None:
    """Run until ``stop`` is set, then stop gracefully.

    Raises:
        KainiteError: what ended the daemon, or kept it from starting.
    """
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "kainite"))
    dynamodb = aws.client("dynamodb", settings.aws)
    stream = StreamClient(aws.client("kinesis", settings.aws), settings.stream.name)
    membership = Membership(dynamodb, settings.leases)
    table = LeaseTable(dynamodb, settings.leases.table)
    keeper = LeaseKeeper(table, stream, settings.leases, settings.stream, stance=membership.stance)
    try:
        async with asyncio.TaskGroup() as group:
            async with _units(settings, dynamodb, group, stop) as units:
                # Not before the log is ours: a daemon that stands by for another one's log must leave it the shards.
                keeping = group.create_task(_keep(membership, keeper), name="lease keeper")
                belonging = group.create_task(membership.run(), name="fleet membership")
                parts = Parts(polling(stream), keeper, settings.stream, settings.child, units)
                supervisor = Supervisor(parts, group)
                following = group.create_task(supervisor.follow_leases(), name="lease events")
                event(logger, logging.INFO, "daemon ready", stream=settings.stream.name,
                      application=settings.leases.application, worker=settings.leases.worker_id)  # fmt: skip
                try:
                    await stop.wait()
                    belonging.cancel()  # a leader is to give no more leases to a worker that goes
                    await supervisor.stop()
                except asyncio.CancelledError:
                    if stop.is_set():  # the second signal; otherwise the group ends its tasks in its own way
                        supervisor.kill()
                    raise
                following.cancel()
            keeping.cancel()
    except BaseExceptionGroup as failures:
        _raise_first(failures, unless=LogHeldError)  # told to stop while waiting for another's log
    finally:
        await _give_back(keeper)
    event(logger, logging.INFO, "daemon stopped", worker=settings.leases.worker_id)


class Supervisor:
    """The shard consumers: at most one runs for a shard at any time."""

    def __init__(self, parts: Parts, group: asyncio.TaskGroup) -> None:
        self._parts = parts
        self._group = group
        self._grace = parts.child_settings.shutdown_grace
        self._stopping = False
        self._running: dict[HeldLease, tuple[ShardConsumer, asyncio.Task[None]]] = {}

    async def follow_leases(self) -> None:
        """Start a consumer for each lease gained, and end it when the lease is lost; until cancelled."""
        while True:
            match await self._parts.keeper.next():
                case Gained(lease) if not self._stopping:
                    self._start(lease)
                case HandingOver(lease) if lease in self._running:
                    consumer, task = self._running[lease]
                    consumer.hand_over()
                    self._group.create_task(self._end(task))
                case Lost(lease) if lease in self._running:
                    consumer, task = self._running[lease]
                    consumer.lose()
                    self._group.create_task(self._end(task))

    async def stop(self) -> None:
        """End all consumers within the grace; leases gained from now on are left alone."""
        self._stopping = True
        running = tuple(self._running.values())
        for consumer, _ in running:
            consumer.stop()
        await asyncio.gather(*(self._end(task) for _, task in running))

    def kill(self) -> None:
        """Kill all children; their consumers are to be cancelled."""
        for consumer, _ in self._running.values():
            consumer.kill()

    def _start(self, lease: HeldLease) -> None:
        before = [task for other, (_, task) in self._running.items() if other.shard_id == lease.shard_id]
        consumer = ShardConsumer(lease, lambda: self._parts)
        task = self._group.create_task(_after(before, consumer), name=f"consumer of {lease.shard_id}")
        self._running[lease] = consumer, task
        task.add_done_callback(lambda _: self._running.pop(lease, None))

    async def _end(self, task: asyncio.Task[None]) -> None:
        _, late = await asyncio.wait({task}, timeout=self._grace)
        if late:
            event(logger, logging.WARNING, "child did not end in time", task=task.get_name(), grace=self._grace)
            task.cancel()
            await asyncio.wait({task})


async def _after(before: list[asyncio.Task[None]], consumer: ShardConsumer) -> None:
    """Run a consumer when an earlier one of its shard has ended."""
    if before:
        await asyncio.wait(before)
    await consumer.run()


@asynccontextmanager
async def _units(
    settings: Settings, dynamodb: DynamoDBClient, group: asyncio.TaskGroup, stop: asyncio.Event
) -> AsyncIterator[Callable[[], UnitsOfWork] | None]:
    """What brings emits to the log, made anew for each shard; None where units of work are disabled."""
    if not settings.log.enabled:
        yield None
        return
    # Imported here, so that a plain KCL worker starts without them.
    from kainite.log.dynamodb_store import DynamoDBStore
    from kainite.log.owner import LogOwner
    from kainite.uow.admission import Admission
    from kainite.uow.load import load_catalogue

    apply = settings.apply
    loading = asyncio.to_thread(load_catalogue, settings.uow.catalogue_file, apply.target, apply.schemas)
    reading = group.create_task(loading, name="catalogue")
    store = DynamoDBStore(dynamodb, settings.log.table)
    async with LogOwner.open(store, settings.log, settings.uow, stop=stop) as owner:
        watching = group.create_task(_watch(owner), name="log owner")
        try:
            catalogue = await reading
            yield lambda: UnitsOfWork(owner, Admission(catalogue))
        finally:
            watching.cancel()


async def _keep(membership: Membership, keeper: LeaseKeeper) -> None:
    """Hold leases, as the fleet does it."""
    await membership.begin()
    await keeper.run()


async def _give_back(keeper: LeaseKeeper) -> None:
    try:
        await keeper.close()
    except KainiteError as error:
        event(logger, logging.WARNING, "leases not given back: they run out by themselves", error=error)


async def _watch(owner: LogOwner) -> NoReturn:
    raise await owner.failed()


def _raise_first(failures: BaseExceptionGroup, unless: type[KainiteError]) -> None:
    """Raise the first of our own errors out of a group, else the first of all: the rest follows from it."""
    flat = list(_flatten(failures))
    first = next((error for error in flat if isinstance(error, KainiteError)), flat[0])
    if not isinstance(first, unless):
        raise first


def _flatten(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [inner for part in error.exceptions for inner in _flatten(part)]
    return [error]


async def _run(settings: Settings) -> int:
    stop = asyncio.Event()
    supervising = asyncio.create_task(supervise(settings, stop))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_signal, number, stop, supervising)
    try:
        await supervising
    except asyncio.CancelledError:
        return 1
    return 0


def _on_signal(number: signal.Signals, stop: asyncio.Event, supervising: asyncio.Task[None]) -> None:
    if stop.is_set():
        event(logger, logging.WARNING, "killing", signal=number.name)
        supervising.cancel()
    else:
        event(logger, logging.INFO, "stopping", signal=number.name)
        stop.set()
