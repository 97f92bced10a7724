"""Decides when leases are created and deleted: shard sync, its audit, and cleanup (docs/kcl.md, *Shard sync*).

Once in each ``shardSyncIntervalMillis`` (60 s; KCL audits every two minutes and cleans up every one to thirty):

* Every worker deletes completed leases, if ``cleanupLeasesUponShardCompletion`` is set.
* The leader (:mod:`~kainite.leases.taking.kcl2_leader`) audits and syncs each stream that it reads
  (:mod:`.stream_sync`), and deletes the leases of streams that nobody reads any more (:mod:`.former_streams`).

A worker's first run is a full shard sync, if it leads or the table is empty, unless
``skipShardSyncAtWorkerInitializationIfLeasesExist`` is set and there are leases. KCL waits a random time before that
sync; the conditional creation makes the wait needless. Where leases are assigned (KCL 3), only completed leases are
deleted here. A stream that is added to the settings gets its first sync at once.

A worker that does not lead creates no leases. With units of work it notes in the log that a stream of its settings
without leases is awaited, as the leader does before it creates some: the leader may be a Java worker, which tells the
log nothing (docs/kcl.md, *Several streams*).

A failing ListShards, or a log that does not note its beginning, does not keep a worker from taking leases, nor other
streams from being synced. The call is repeated soon, some times, and then at the next run. Only with an empty table,
where there is nothing to take, the caller gets the error. Among several streams that holds for a stream that is gone or
refused, too: the others go on. :attr:`ShardSyncSchedule.unsynced` tells which streams fail, for ``/health``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kainite.base.errors import LogUnavailableError, StreamError
from kainite.base.logs import event
from kainite.leases.holding.held_leases import CurrentSettings
from kainite.leases.shard_sync.cleanup import completed, delete_leases
from kainite.leases.shard_sync.create_leases import note_beginning
from kainite.leases.shard_sync.former_streams import FormerStreams
from kainite.leases.shard_sync.stream_sync import StreamSync
from kainite.leases.stance import Stance
from kainite.leases.streams import StreamsById, of_streams
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.observe.meter import Meter
from kainite.observe.metric import IS_LEADER, PARTIAL_STREAMS, STREAMS_TO_SYNC

logger = logging.getLogger(__name__)

_Failure: TypeAlias = StreamError | LogUnavailableError


@dataclass(frozen=True, slots=True)
class UnsyncedStream:
    """A stream whose leases the latest sync has failed for.

    Attributes:
        cause: why.
        since: when the first one of these failures was, by the clock of the schedule.
        passes: whether the same call may succeed later.
    """

    cause: str
    since: float
    passes: bool


class ShardSyncSchedule:
    """Runs shard sync, audit and cleanup when they are due. One call of :meth:`run_due` at a time.

    Args:
        table: the lease table.
        settings: the settings in use, with the streams.
        stance: whether this worker may lead at all.
        clock: seconds, never running backwards.
        meter: takes the metrics.
        keep_unread: as :class:`~kainite.leases.shard_sync.former_streams.FormerStreams` takes it.

    Attributes:
        unsynced: the streams whose latest sync by this worker has failed, by their ids; only the worker that leads
            syncs any.
    """

    def __init__(
        self,
        table: LeaseTable,
        settings: CurrentSettings,
        stance: Callable[[], Stance],
        clock: Callable[[], float],
        meter: Meter,
        *,
        keep_unread: bool = False,
    ) -> None:
        self._table = table
        self._settings = settings
        self._stance = stance
        self._clock = clock
        self._meter = meter
        self._syncs: dict[str, StreamSync] = {}
        self._former = FormerStreams(table, keep_unread, clock)
        self._failures = 0
        self._due = clock()
        self.unsynced: Mapping[str, UnsyncedStream] = {}

    @property
    def due(self) -> float:
        """Returns when the next run is due, by the clock; at once when a stream was added."""
        return self._due if self._settings.streams.keys() == self._syncs.keys() else min(self._due, self._clock())

    async def run_due(self, leases: Sequence[Lease], leader: str | None) -> bool:
        """Syncs the leases with the streams' shards, and cleans up, where either is due.

        Args:
            leases: the whole table.
            leader: the worker that leads; None when nobody holds a lease.

        Returns:
            Whether the table may have changed.

        Raises:
            LeaseTableError: the table cannot be used.
            StreamError: the stream cannot be listed; a retryable error is raised only when there are no leases.
            LogUnavailableError: there are no leases, and the log's beginning could not be noted.
        """
        if self._clock() < self.due:
            return False
        changed, failure = await self._run(leases, leader)
        if failure is not None:
            if not leases and not changed:
                raise failure
            self._failed(failure)
            return True
        self._failures = 0
        self._due = self._clock() + self._settings.stream.shard_sync
        return changed

    async def _run(self, leases: Sequence[Lease], leader: str | None) -> tuple[bool, _Failure | None]:
        """Returns whether the table may have changed, and why a stream could not be synced."""
        settings, streams = self._settings.leases, self._settings.streams
        keys = completed(leases) if settings.cleanup_completed else ()
        if keys:
            await asyncio.to_thread(delete_leases, self._table, keys)
        sharing = self._stance() is Stance.SHARE
        leads = sharing and (not leases or leader in (None, settings.worker_id))
        self._meter.observe(IS_LEADER, leads)
        self._syncs = {stream: self._syncs.get(stream) or StreamSync(self._table) for stream in streams}
        if not leads:
            for sync in self._syncs.values():
                sync.rest()
            self.unsynced = {}
            cut_off = self._stance() is Stance.ABSTAIN
            return bool(keys), None if cut_off else await self._await_unleased(leases, streams)
        changed, failure = await self._sync(leases, streams)
        self._tell()
        if any(streams):
            after = settings.former_streams_after
            changed |= await asyncio.to_thread(self._former.clean_up, leases, streams, after)
        return changed or bool(keys), failure

    async def _sync(self, leases: Sequence[Lease], streams: StreamsById) -> tuple[bool, _Failure | None]:
        changed: bool = False
        failure: _Failure | None = None
        before, unsynced = self.unsynced, dict[str, UnsyncedStream]()
        self.unsynced = unsynced
        for stream, read in streams.items():
            mine, clean_up = of_streams(leases, (stream,)), self._settings.leases.cleanup_completed
            try:
                changed |= await self._syncs[stream].run(read, mine, clean_up=clean_up)
            except (StreamError, LogUnavailableError) as error:
                if not error.retryable and not stream:
                    raise
                failure = failure or error
                since = before[stream].since if stream in before else self._clock()
                unsynced[stream] = UnsyncedStream(str(error), since, error.retryable)
        return changed, failure

    async def _await_unleased(self, leases: Sequence[Lease], streams: StreamsById) -> _Failure | None:
        """Has the log await each stream among several that has no lease; returns why it does not, if so."""
        leased = {lease.stream for lease in leases}
        try:
            for stream, read in streams.items():
                if stream and stream not in leased and read.begin is not None:
                    await note_beginning(read.settings, read.begin)
        except (StreamError, LogUnavailableError) as error:
            return error
        return None

    def _tell(self) -> None:
        audits = [sync.audit for sync in self._syncs.values() if sync.audit is not None]
        if audits:
            self._meter.observe(PARTIAL_STREAMS, sum(audit.partial for audit in audits))
            self._meter.observe(STREAMS_TO_SYNC, sum(audit.syncing for audit in audits))

    def _failed(self, error: _Failure) -> None:
        self._failures += 1
        event(logger, logging.WARNING, "shards not listed", failures=self._failures, error=error)
        soon = self._failures % max(1, self._settings.stream.list_shards_tries) != 0
        stream = self._settings.stream
        self._due = self._clock() + (stream.list_shards_backoff if soon else stream.shard_sync)
