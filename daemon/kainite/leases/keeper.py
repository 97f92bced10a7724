"""The lease keeper: holds leases for this worker and reports which shards may be read.

================================================  ==================================================
:mod:`~kainite.leases.holding.held_leases`        which leases are held, and the invariants
:mod:`~kainite.leases.holding.renewer`            renews them, ends hand-overs
:mod:`~kainite.leases.taking.taker`               takes them, by :mod:`~kainite.leases.taking.choice`
:mod:`~kainite.leases.shard_sync.schedule`        creates and deletes them as the stream's shards change
================================================  ==================================================

A crash leaves owned leases. Another worker (or this one under another id) takes them after the failover time, this one
under the same id at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from kainite.base.checkpoint import Checkpoint
from kainite.base.clock import boot_seconds
from kainite.base.errors import LeaseTableUnavailableError, StreamUnavailableError
from kainite.base.logs import event
from kainite.base.shard_key import ShardKey
from kainite.kinesis.shards import Shard
from kainite.leases.foreign_streams import ForeignStream
from kainite.leases.holding.held_leases import (
    CurrentSettings,
    Gained,
    HandingOver,
    HeldLease,
    HeldLeases,
    LeaseEvent,
    Lost,
    RestartWanted,
)
from kainite.leases.holding.renewer import Renewer, renewal_interval
from kainite.leases.holding.writing import write, writing
from kainite.leases.other_log import OtherLog
from kainite.leases.shard_sync.create_leases import create_child_leases
from kainite.leases.shard_sync.schedule import ShardSyncSchedule, UnsyncedStream
from kainite.leases.stance import Stance
from kainite.leases.streams import StreamsById
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.leases.table.request import LeaseRequest, RequestState
from kainite.leases.taking.taker import LeaseTaker
from kainite.observe.meter import SILENT, Meter
from kainite.settings import LeaseSettings, StreamSettings

__all__ = ["Gained", "HandingOver", "HeldLease", "LeaseEvent", "LeaseKeeper", "Lost", "RestartWanted"]

logger = logging.getLogger(__name__)


class LeaseKeeper:
    """Takes, renews and releases this worker's leases, and reports each gain and loss as an event.

    Args:
        table: the lease table.
        streams: the streams whose shards the leases are for, each with its initial position.
        leases: this worker's id and limits.
        stream_settings: how often shards and parents are checked.
        keep_unread: as :class:`~kainite.leases.shard_sync.former_streams.FormerStreams` takes it.
        stance: whether this worker takes its part (KCL 2) or what it is assigned (KCL 3); asked in each round.
        meter: receives the metrics.
        clock: seconds, never running backwards, and running on while the host is suspended.
        rng: chooses among equal leases.
    """

    def __init__(
        self,
        table: LeaseTable,
        streams: StreamsById,
        leases: LeaseSettings,
        stream_settings: StreamSettings,
        *,
        keep_unread: bool = False,
        stance: Callable[[], Stance] = lambda: Stance.SHARE,
        meter: Meter = SILENT,
        clock: Callable[[], float] = boot_seconds,
        rng: Random | None = None,
    ) -> None:
        self._table = table
        self._clock = clock
        self._settings = CurrentSettings(leases, stream_settings, streams)
        self._held_leases = HeldLeases(self._settings, clock, meter)
        self._renewer = Renewer(table, self._held_leases, self._settings, clock, meter)
        self._shard_sync = ShardSyncSchedule(table, self._settings, stance, clock, meter, keep_unread=keep_unread)
        self._taker = LeaseTaker(
            table, self._shard_sync, self._held_leases, self._settings,
            stance=stance, clock=clock, meter=meter, rng=rng or Random(),
        )  # fmt: skip

    @property
    def held(self) -> tuple[HeldLease, ...]:
        """Returns the leases that this worker holds."""
        return self._held_leases.all

    @property
    def seconds_since_round(self) -> float | None:
        """Returns the seconds since the table last answered a whole round; None before the first."""
        return self._taker.seconds_since_round

    @property
    def to_be_read(self) -> frozenset[str] | None:
        """Returns all shards that are to be read, by any worker: leases that are not at SHARD_END; None while unknown.

        As of the last round. A shard that has appeared since stands behind a parent that is still among these.
        """
        return self._taker.to_be_read

    @property
    def behind_parents(self) -> frozenset[str]:
        """Returns those of :attr:`to_be_read` that are not read yet, because a parent is to be read first."""
        return self._taker.behind_parents

    def collects(self, shard: str) -> bool:
        """Tells whether units of work wait until a shard, given by its key, is read."""
        stream = self._settings.streams.get(ShardKey.of(shard).stream)
        return stream is None or stream.collected

    @property
    def unsynced(self) -> Mapping[str, UnsyncedStream]:
        """Returns the streams whose latest shard sync by this worker has failed, by their ids."""
        return self._shard_sync.unsynced

    @property
    def foreign(self) -> Mapping[str, ForeignStream]:
        """Returns the streams that other workers read and this worker's settings do not name, by their ids."""
        return self._taker.foreign

    @property
    def other_log(self) -> OtherLog | None:
        """Returns a worker that collects into another log; while there is one, this worker takes no lease."""
        return self._taker.other_log

    @property
    def overlap(self) -> float:
        """Returns the seconds from a reported loss until another worker may have had it for the failover time."""
        failover = self._settings.leases.failover
        return failover - renewal_interval(failover)

    async def next_event(self) -> LeaseEvent:
        """Waits for the next event and returns it."""
        return await self._held_leases.events.get()

    def reload(self, leases: LeaseSettings, stream: StreamSettings, streams: StreamsById) -> None:
        """Applies other settings; the application, its table and this worker's id stay as they are.

        The leases of a stream that is not among ``streams`` any more are given back; each consumer gets a
        :class:`HandingOver` for that.
        """
        now = self._settings.leases
        kept = replace(leases, application=now.application, table=now.table, worker_id=now.worker_id)
        if not streams.keys() <= self._settings.streams.keys():
            self._taker.to_be_read = None
        self._settings.leases, self._settings.stream, self._settings.streams = kept, stream, streams
        self._held_leases.wake.set()

    def stop_taking(self) -> None:
        """Takes no lease from now on, and goes on renewing the held ones.

        A worker that stops calls this: nobody would read a shard whose lease it takes, and others would wait.
        """
        self._taker.stop()

    async def run(self) -> None:
        """Takes and renews until cancelled; the held leases then stay held for :meth:`close`.

        Raises:
            KainiteError: an error that waiting does not repair.
        """
        tasks = (
            asyncio.create_task(self._renewer.run(), name="lease renewal"),
            asyncio.create_task(self._taker.run(), name="lease taking"),
        )
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def checkpoint(self, held: HeldLease, checkpoint: Checkpoint) -> None:
        """Stores a checkpoint; it is durable on return.

        Raises:
            LeaseLostError: the lease is not this worker's any more.
            LeaseTableError: the checkpoint could not be stored; the lease is still held if the error is retryable.
        """

        def store(doubtful: bool) -> Lease | None:
            return self._table.checkpoint(held.lease, checkpoint, doubtful=doubtful)

        self._held_leases.ensure_held(held)
        async with writing(self._held_leases, held):
            self._held_leases.ensure_held(held)
            stored = await write(self._held_leases, held, store, self._clock)
        if stored is None:
            raise self._held_leases.lost_error(held)

    async def shard_ended(self, held: HeldLease, children: Sequence[Shard]) -> None:
        """Creates the child shards' leases; the caller tells the record processor of the shard's end afterwards.

        Raises:
            LeaseLostError: the lease is not this worker's any more.
            LeaseTableError, StreamError, LogUnavailableError: the leases could not be created; the call may be repeated
                if the error is retryable.
        """
        self._held_leases.ensure_held(held)
        stream = self._settings.streams.get(held.lease.stream)
        if stream is None:
            raise StreamUnavailableError(f"the stream of shard {held.shard_id} is read no more")
        there = await create_child_leases(
            self._table, stream.client, stream.settings, held.lease, children, stream.begin
        )
        if not there:
            self._held_leases.lose(held)
            raise self._held_leases.lost_error(held)

    async def release(self, held: HeldLease, *, pause: float = 0.0) -> None:
        """Releases a lease after its consumer has stopped; anybody may take it at once.

        Args:
            held: the lease; nothing happens when it is lost already.
            pause: for how many seconds this worker does not take the lease again.
        """
        if self._held_leases.begin_release(held):
            try:
                await self._evict(held)
            finally:
                self._held_leases.end_release(held.shard_id, pause)

    async def hand_over(self, held: HeldLease) -> None:
        """Ends a hand-over (``HandingOver`` was reported) after its consumer has stopped and checkpointed.

        A lease that a person moves goes to its target. Without a hand-over and a move, and where the table has no
        hand-over any more, this is :meth:`release`. Nothing happens when the lease is lost already. A table that is out
        of reach is not an error: the lease is lost then, and the leader or the failover time ends the hand-over.
        """
        if held.hand_over_by is None and held.moving is None:
            await self.release(held)
            return
        try:
            if held.hand_over_by is not None:
                await self._renewer.hand_over(held)
            else:
                await self._renewer.requests.hand_off(held)
        except LeaseTableUnavailableError as error:
            event(logger, logging.WARNING, "lease not handed over", shard=held.shard_id, error=error)
            self._held_leases.lose(held)  # its consumer has ended: renewed, it would be held and not read
        await self.release(held)

    def restarted(self, held: HeldLease, request: LeaseRequest, said: str, *, done: bool) -> None:
        """Takes what has become of a restart (``RestartWanted`` was reported); the next renewal tells who has asked."""
        held.verdict = request.now(RequestState.DONE if done else RequestState.REFUSED, said)

    async def close(self) -> None:
        """Releases all held leases, so that other workers need not wait. The caller has ended :meth:`run` before."""
        leases = [held for held in self.held if self._held_leases.begin_release(held)]
        await asyncio.gather(*(self._evict(held) for held in leases))

    async def _evict(self, held: HeldLease) -> None:
        async with held.lock:
            try:
                evicted = await asyncio.to_thread(self._table.evict, held.lease)
            except LeaseTableUnavailableError as error:
                # Not an error: the lease expires by itself.
                event(logger, logging.WARNING, "lease not released", shard=held.shard_id, error=error)
            else:
                event(logger, logging.INFO, "lease released", shard=held.shard_id, still_ours=evicted)
