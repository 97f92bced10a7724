"""The daemon: one lease keeper, one log owner, and a consumer for each shard whose lease is held.

Start: the child's program is looked for, the log is mounted and the target's catalogue read, the fleet is looked at,
then leases are taken; a daemon that waits for a log that another one owns holds no shard. Whatever fails before that
ends the daemon with an error.

Stop, on the first SIGTERM or SIGINT: every child finishes its call, is told ``shutdownRequested`` and
``leaseLost`` and ends, all within the grace of the settings; those that are not done by then are
terminated. Then the leases are given back, and the log is released, so that others need not wait
for either to run out. A second signal kills the children and gives up at once (:mod:`kainite.base.signals`).

What ends the daemon by itself: another owner fenced the log (nothing may be appended any more), the log
or the lease table cannot be used. A child, a shard or the network failing never does.

What a crash leaves behind: leases and a log partition that run out, children whose input ends, and nothing
that was acknowledged and is not durable (:mod:`kainite.worker.shard_call`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, NoReturn

from kainite.aws import clients as aws
from kainite.base.errors import KainiteError, LogHeldError, SettingsError
from kainite.base.logs import event
from kainite.base.signals import Signals
from kainite.child.program import find_program
from kainite.fleet.kcl3.membership import Membership
from kainite.kinesis.client import StreamClient
from kainite.leases.keeper import LeaseKeeper
from kainite.leases.table.lease_table import LeaseTable
from kainite.observe.health import LogState, WorkerFacts
from kainite.observe.meter import Meter
from kainite.observe.publishing import publishing
from kainite.observe.shard_status import ShardStatus
from kainite.settings import Settings
from kainite.settings.loading.reload import When, changes, in_force, reread
from kainite.worker import memory
from kainite.worker.consumers import Consumers
from kainite.worker.shard_call import UnitsOfWork
from kainite.worker.shard_consumer import Parts
from kainite.worker.sources import open_sources

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

    from kainite.log.owner.owner import LogOwner

logger = logging.getLogger(__name__)

THREADS = 256
"""The most calls to AWS at a time: one a shard, and a few more. Threads are made when they are needed."""

LAST_CALLS_S = 1.0
"""How long the process waits at its end for calls whose answers nobody wants any more."""


def run(settings: Settings) -> int:
    """Run until a signal; returns the exit status.

    Raises:
        KainiteError: what ended the daemon, or kept it from starting.
    """
    memory.share_one_arena()
    status = asyncio.run(_run(settings))
    _leave_calls(status)
    return status


async def supervise(settings: Settings, stop: asyncio.Event, reload: asyncio.Event | None = None) -> None:
    """Run until ``stop`` is set, then stop gracefully. ``reload`` makes it read its settings file again.

    Raises:
        KainiteError: what ended the daemon, or kept it from starting.
    """
    find_program(settings.child)
    with _threads():
        daemon = _Daemon(settings, stop, reload or asyncio.Event())
        async with publishing(settings, daemon.statuses, daemon.facts) as meter:
            await daemon.run(meter)
    event(logger, logging.INFO, "daemon stopped", worker=settings.leases.worker_id)


class _Daemon:
    """One run of the daemon: what it is made of, and what it knows of itself."""

    def __init__(self, settings: Settings, stop: asyncio.Event, reload: asyncio.Event) -> None:
        self._settings = settings
        self._stop = stop
        self._reload = reload
        self._log = LogState.WAITING if settings.log.enabled else LogState.DISABLED
        self._dynamodb = aws.client("dynamodb", settings.aws)
        self._membership = Membership(self._dynamodb, settings.leases)
        self._keeper: LeaseKeeper | None = None
        self._consumers: Consumers | None = None

    def statuses(self) -> tuple[ShardStatus, ...]:
        return self._consumers.statuses() if self._consumers else ()

    def facts(self) -> WorkerFacts:
        keeper = self._keeper
        return WorkerFacts(
            leases=len(keeper.held) if keeper else 0,
            reached=keeper.reached if keeper else None,
            log=self._log,
            stopping=self._stop.is_set(),
        )

    async def run(self, meter: Meter) -> None:
        """Until told to stop."""
        settings = self._settings
        kinesis = aws.client("kinesis", settings.aws)
        stream = StreamClient(kinesis, settings.stream.name, settings.stream.arn)
        sources = await asyncio.to_thread(open_sources, kinesis, stream, settings, meter)
        table = LeaseTable(self._dynamodb, settings.leases.table)
        stance = self._membership.stance
        keeper = LeaseKeeper(table, stream, settings.leases, settings.stream, stance=stance, meter=meter)
        self._keeper = keeper
        try:
            async with asyncio.TaskGroup() as group, _units(settings, self._dynamodb, group, self._stop) as units:
                self._log = LogState.MOUNTED if units else LogState.DISABLED

                def parts() -> Parts:
                    now = self._settings
                    return Parts(sources(now.child.protocol), keeper, now.stream, now.child, units, meter)

                await self._work(group, keeper, Consumers(keeper, parts, group))
        except BaseExceptionGroup as failures:
            _raise_first(failures, unless=LogHeldError)  # told to stop while waiting for another's log
        finally:
            await _give_back(keeper)

    async def _work(self, group: asyncio.TaskGroup, keeper: LeaseKeeper, consumers: Consumers) -> None:
        # Not before the log is ours: a daemon that stands by for another one's log must leave it the shards.
        self._consumers = consumers
        keeping = group.create_task(_keep(self._membership, keeper), name="lease keeper")
        belonging = group.create_task(self._membership.run(), name="fleet membership")
        following = group.create_task(consumers.follow_leases(), name="lease events")
        reloading = group.create_task(self._reload_when_told(keeper), name="settings")
        event(logger, logging.INFO, "daemon ready", stream=self._settings.stream.name,
              application=self._settings.leases.application, worker=self._settings.leases.worker_id)  # fmt: skip
        try:
            await self._stop.wait()
            belonging.cancel()  # a leader is to give no more leases to a worker that goes
            reloading.cancel()
            await consumers.stop()
        except asyncio.CancelledError:
            if self._stop.is_set():  # the second signal; otherwise the group ends its tasks in its own way
                consumers.kill()
            raise
        following.cancel()
        keeping.cancel()

    async def _reload_when_told(self, keeper: LeaseKeeper) -> NoReturn:
        while True:
            await self._reload.wait()
            self._reload.clear()
            try:
                fresh = await asyncio.to_thread(reread, self._settings)
                find_program(fresh.child)
            except SettingsError as error:
                event(logger, logging.ERROR, "settings not read again: the old ones hold", error=error)
                continue
            for change in changes(self._settings, fresh):
                level = logging.WARNING if change.when is When.RESTART else logging.INFO
                event(logger, level, "setting changed", key=change.key, takes_effect=change.when.value)
            self._settings = now = in_force(self._settings, fresh)
            keeper.reload(now.leases, now.stream)
            event(logger, logging.INFO, "settings read again", file=fresh.path)


@contextmanager
def _threads() -> Iterator[None]:
    """The loop's threads for calls to AWS, which are not waited for at its end."""
    loop, calls = asyncio.get_running_loop(), ThreadPoolExecutor(THREADS, "kainite")
    loop.set_default_executor(calls)
    try:
        yield
    finally:
        calls.shutdown(wait=False, cancel_futures=True)
        loop.set_default_executor(ThreadPoolExecutor(1))


def _leave_calls(status: int) -> None:
    """End the process if calls are left that AWS does not answer: boto3 may wait for minutes, and Python for it."""
    end = time.monotonic() + LAST_CALLS_S
    others = [thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.main_thread()]
    for thread in others:
        thread.join(max(0.0, end - time.monotonic()))
    if left := [thread for thread in others if thread.is_alive()]:
        event(logger, logging.WARNING, "calls to AWS not waited for", calls=len(left))
        logging.shutdown()
        os._exit(status)


@asynccontextmanager
async def _units(
    settings: Settings, dynamodb: DynamoDBClient, group: asyncio.TaskGroup, stop: asyncio.Event
) -> AsyncIterator[Callable[[], UnitsOfWork] | None]:
    """What brings emits to the log, made anew for each shard; None where units of work are disabled."""
    if not settings.log.enabled:
        yield None
        return
    # Imported here, so that a plain KCL worker starts without them.
    from kainite.log.audit.opening import open_audit
    from kainite.log.owner.owner import LogOwner
    from kainite.log.store.dynamodb import DynamoDBStore
    from kainite.uow.admission import Admission
    from kainite.uow.catalogue.load import load_catalogue

    apply = settings.apply
    loading = asyncio.to_thread(load_catalogue, settings.uow.catalogue_file, apply.target, apply.schemas)
    reading = group.create_task(loading, name="catalogue")
    store = DynamoDBStore(dynamodb, settings.log.table)
    audit = await asyncio.to_thread(open_audit, settings.log, settings.aws)
    async with LogOwner.open(store, settings.log, settings.uow, audit=audit, stop=stop) as owner:
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
    stop, reload = asyncio.Event(), asyncio.Event()
    supervising = asyncio.create_task(supervise(settings, stop, reload))
    signals = Signals(stop, supervising.cancel, reload)
    try:
        await supervising
    except asyncio.CancelledError:
        return 1
    finally:
        signals.remove()
    return 0
