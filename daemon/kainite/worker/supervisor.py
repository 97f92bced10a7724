"""Runs the daemon: one lease keeper, one share in the log, and a consumer for each shard whose lease is held.

Start: the daemon looks for the child's program, joins those who share the log, reads the target's catalogue, looks at
the fleet, and then takes leases; a daemon that neither owns the log nor reaches its owner has no shard. Until then it
waits for DynamoDB, Kinesis and the target, however long they are away (:mod:`kainite.base.outage`). Any other failure
before that ends the daemon with an error.

Stop, on the first SIGTERM or SIGINT: every child finishes its call, is asked ``shutdownRequested`` and ``leaseLost``
and ends, all within the grace of the settings; children that are still running then are terminated. Then the daemon
gives the leases back and releases the log, so that other workers need not wait until either expires. A second signal
kills the children and ends the daemon at once (:mod:`kainite.base.signals`).

Two failures end the daemon: the log cannot be used, or the lease table cannot be used. A failing child, shard or
network never does, nor does a change of the log's owner (:mod:`kainite.peers.sharing.shared_log`).

A crash leaves behind: leases and a log partition that expire, children whose input ends, and nothing that was
acknowledged and is not durable (:mod:`kainite.worker.call_rules`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING

from kainite.aws import clients as aws
from kainite.base import service_manager
from kainite.base.checkpoint import Checkpoint
from kainite.base.clock import boot_seconds
from kainite.base.errors import KainiteError, StoppedError
from kainite.base.file_limit import provide
from kainite.base.garbage import collect_rarely
from kainite.base.log_thread import log_in_thread
from kainite.base.logs import event
from kainite.base.signals import until_stopped
from kainite.child.program_lookup import find_program
from kainite.kinesis.client import StreamClient
from kainite.leases.kcl3.membership import Membership
from kainite.leases.keeper import LeaseKeeper
from kainite.leases.stance import Stance
from kainite.leases.table.lease_table import LeaseTable
from kainite.observe.check import Check
from kainite.observe.health import HealthLimits, LogMountState, WorkerFacts, judge
from kainite.observe.meter import Meter
from kainite.observe.publishing import publishing
from kainite.observe.shard_status import ShardStatus
from kainite.settings import Settings, UowEnd
from kainite.worker import malloc_arena
from kainite.worker.aws_threads import aws_threads, leave_unanswered_calls
from kainite.worker.beginning import noted
from kainite.worker.consumers import Consumers
from kainite.worker.cut_off import give_back_while_cut_off
from kainite.worker.daemon_streams import DaemonStreams
from kainite.worker.file_limit import needed
from kainite.worker.first_failure import raise_first
from kainite.worker.health_log import HealthLog
from kainite.worker.log_checks import checks_of, checks_of_other
from kainite.worker.output_stream import output_of
from kainite.worker.reading_reports import report_reading
from kainite.worker.settings_in_force import SettingsInForce
from kainite.worker.shard_consumer import ConsumerParts
from kainite.worker.stream_checks import stream_checks
from kainite.worker.units_of_work import open_units_of_work, timed

if TYPE_CHECKING:
    from kainite.peers.sharing.shared_log import SharedLog

logger = logging.getLogger(__name__)


def run(settings: Settings) -> int:
    """Runs the daemon until a signal; returns the exit status.

    Raises:
        KainiteError: what ended the daemon, or kept it from starting.
    """
    malloc_arena.share_one_arena()
    collect_rarely()
    with log_in_thread():
        provide(needed(settings, ports=1 if settings.log.enabled else 0))
        status = asyncio.run(until_stopped(partial(supervise, settings)))
    leave_unanswered_calls(status)
    return status


async def supervise(settings: Settings, stop: asyncio.Event, reload: asyncio.Event | None = None) -> None:
    """Runs the daemon until ``stop`` is set, then stops it gracefully.

    Args:
        settings: the daemon's settings.
        stop: set to stop the daemon.
        reload: set to make the daemon read its settings file again.

    Raises:
        KainiteError: what ended the daemon, or kept it from starting.
    """
    find_program(settings.child)
    with aws_threads():
        daemon = _Daemon(settings, stop, reload or asyncio.Event())
        async with publishing(settings, daemon.statuses, daemon.facts) as meter, daemon.duties(meter):
            with suppress(StoppedError):
                await daemon.run(meter)
    event(logger, logging.INFO, "daemon stopped", worker=settings.leases.worker_id)


class _Daemon:
    """One run of the daemon: its parts, and what it reports about itself."""

    def __init__(self, settings: Settings, stop: asyncio.Event, reload: asyncio.Event) -> None:
        self._settings = SettingsInForce(settings)
        self._stop = stop
        self._reload = reload
        self._dynamodb = aws.client("dynamodb", settings.aws)
        self._membership = Membership(self._dynamodb, settings.leases)
        self._streams: DaemonStreams | None = None
        self._keeper: LeaseKeeper | None = None
        self._log: SharedLog | None = None
        self._consumers: Consumers | None = None
        self._output = output_of(settings)

    def duties(self, meter: Meter) -> AbstractAsyncContextManager[None]:
        """Returns what runs this worker's duties beside its shards."""
        if not self._settings.current.fleet.enabled:
            return nullcontext()
        from kainite.fleet.opening import duties_beside  # a worker without duties starts without these modules

        return duties_beside(self._settings.current, self._dynamodb, self._stop, meter)

    def statuses(self) -> tuple[ShardStatus, ...]:
        return self._consumers.statuses() if self._consumers else ()

    def facts(self) -> WorkerFacts:
        keeper, log = self._keeper, self._log
        return WorkerFacts(
            leases=len(keeper.held) if keeper else 0,
            reached=keeper.seconds_since_round if keeper else None,
            log=self._log_state(),
            stopping=self._stop.is_set(),
            backlog=log.backlog() if log else self._output.trouble if self._output else "",
            followers=log.feed_lags() if log else (),
            watermark=log.held_by() if log else "",
            checks=(
                *self._stream_checks(),
                *checks_of_other(keeper.other_log if keeper else None, self._settings.current.log),
                *checks_of(log, self._settings.current.uow.timeout),
            ),
            access=log.access.held.problem(time.time()) if log else "",
        )

    def _stream_checks(self) -> tuple[Check, ...]:
        settings, streams, keeper = self._settings.current, self._streams, self._keeper
        if streams is None:
            return ()
        unsynced, foreign = (keeper.unsynced, keeper.foreign) if keeper is not None else ({}, {})
        return tuple(
            stream_checks(
                streams.refused, unsynced, foreign, streams.spelling, boot_seconds(), settings.metrics.hung_after,
                collected=streams.collected,
            )
        )  # fmt: skip

    def _log_state(self) -> LogMountState:
        if not self._settings.current.log.enabled:
            return LogMountState.DISABLED
        if self._log is None or not self._log.is_reached:
            return LogMountState.WAITING
        return LogMountState.MOUNTED if self._log.owner is not None else LogMountState.FOLLOWING

    def _stance(self) -> Stance:
        """Returns what this worker does about others' leases: it takes none while the log's owner is not reached."""
        cut_off = self._log is not None and self._log.is_cut_off
        return Stance.ABSTAIN if cut_off else self._membership.stance()

    def _read_files_again(self) -> None:
        if self._log is not None:
            self._log.access.held.ask()

    def _opened(self, log: SharedLog) -> None:
        self._log = log

    async def _begin(self, stream: StreamClient, initial: Checkpoint, timestamp: float | None) -> float:
        assert self._log is not None  # leases are created only after the log was reached
        return await noted(self._log, stream.now, initial, timestamp, stream.id)

    async def run(self, meter: Meter) -> None:
        """Runs until the daemon is told to stop."""
        settings = self._settings.current
        streams = self._streams = DaemonStreams(settings, meter)
        await streams.open(self._stop)
        table = LeaseTable(self._dynamodb, settings.leases.table, settings.log.collected)
        begin = self._begin if settings.log.enabled else None
        keeper = LeaseKeeper(
            table, streams.read(begin), settings.leases, settings.stream, stance=self._stance, meter=meter,
            keep_unread=settings.log.enabled and settings.uow.end is UowEnd.WATERMARK,
        )  # fmt: skip
        self._keeper = keeper
        output = self._output.of_shard if self._output else None
        try:
            async with (
                asyncio.TaskGroup() as group,
                open_units_of_work(
                    settings, self._dynamodb, group, self._stop, table.holder, self._opened, streams, meter
                ) as units,
            ):

                def parts(shard: str) -> ConsumerParts:
                    stream = streams.of(shard)
                    now = stream.settings
                    collecting = partial(timed, units, stream.client.now) if units and now.log.enabled else None
                    return ConsumerParts(
                        stream.sources(now.child.protocol), keeper, now.stream, now.child, collecting, meter, output
                    )

                consumers = Consumers(keeper, parts, group)
                async with _sharing(group, keeper, consumers, streams, self._log):
                    await self._work(group, keeper, consumers, streams)
        except BaseExceptionGroup as failures:
            raise_first(failures, unless=StoppedError)  # stopped before the log was reached
        finally:
            await _give_back(keeper)

    async def _work(
        self, group: asyncio.TaskGroup, keeper: LeaseKeeper, consumers: Consumers, streams: DaemonStreams
    ) -> None:
        # The log is reached by now: a daemon that cannot append must leave the shards to those who can.
        self._consumers = consumers
        settings = self._settings.current
        keeping = group.create_task(_keep(self._membership, keeper), name="lease keeper")
        belonging = group.create_task(self._membership.run(), name="fleet membership")
        following = group.create_task(consumers.follow_leases(), name="lease events")

        def reload_leases() -> None:
            now = self._settings.current
            keeper.reload(now.leases, now.stream, streams.read(self._begin if now.log.enabled else None))

        def changed(now: Settings) -> None:
            streams.apply(now)
            reload_leases()

        reloading = group.create_task(
            self._settings.follow(self._reload, changed, self._read_files_again), name="settings"
        )
        opening = group.create_task(streams.follow(reload_leases), name="streams")
        limits, leases = HealthLimits.of(settings), settings.leases
        health = HealthLog(
            lambda: judge(self.statuses(), self.facts(), limits), boot_seconds, partial(_tell_ready, streams),
            stream=streams.name, application=leases.application, worker=leases.worker_id,
        )  # fmt: skip
        telling = group.create_task(health.run(), name="health log")
        try:
            await self._stop.wait()
            telling.cancel()
            service_manager.tell(service_manager.STOPPING)
            belonging.cancel()  # a leader must assign no more leases to a worker that stops
            reloading.cancel()
            opening.cancel()
            await consumers.stop()
        except asyncio.CancelledError:
            # Killed only on the second signal. Otherwise a task failed, and the group ends the consumers' tasks.
            if self._stop.is_set():
                consumers.kill()
            raise
        following.cancel()
        keeping.cancel()
        telling.cancel()


@asynccontextmanager
async def _sharing(
    group: asyncio.TaskGroup, keeper: LeaseKeeper, consumers: Consumers, streams: DaemonStreams, log: SharedLog | None
) -> AsyncIterator[None]:
    """Tells the log how far the shards are read, and leaves them to others while the log is not reached."""
    if log is None:
        yield
        return
    tasks = (
        group.create_task(report_reading(keeper, consumers, log, streams.collected_are_open), name="reading reports"),
        group.create_task(give_back_while_cut_off(log, consumers), name="cut off"),
    )
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


async def _keep(membership: Membership, keeper: LeaseKeeper) -> None:
    """Finds out what kind of fleet the worker belongs to, then takes and renews leases until it is cancelled."""
    await membership.begin()
    await keeper.run()


def _tell_ready(streams: DaemonStreams) -> None:
    service_manager.tell(service_manager.READY, service_manager.status(f"reads stream {streams.name}"))


async def _give_back(keeper: LeaseKeeper) -> None:
    try:
        await keeper.close()
    except KainiteError as error:
        event(logger, logging.WARNING, "leases not given back: they run out by themselves", error=error)
