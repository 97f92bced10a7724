"""Decides when leases are created and deleted: shard sync, its audit, and cleanup (docs/kcl.md, *Shard sync*).

Once in each ``shardSyncIntervalMillis`` (60 s; KCL audits every two minutes and cleans up every one to thirty):

* Every worker deletes completed leases, if ``cleanupLeasesUponShardCompletion`` is set.
* The leader (:mod:`~kainite.leases.taking.kcl2_leader`) audits: the leases that are not at SHARD_END must cover every
  hash key. An empty table, or the same hole three times running, leads to a shard sync: a split under way, or a
  cleanup, leaves holes that close by themselves. The leader also deletes garbage.

A worker's first run is a full shard sync, if it leads or the table is empty, unless
``skipShardSyncAtWorkerInitializationIfLeasesExist`` is set and there are leases. KCL waits a random time before that
sync; the conditional creation makes the wait needless. Where leases are assigned (KCL 3), only completed leases are
deleted here.

A failing ListShards, or a log that does not note its beginning, does not keep a worker from taking leases. The call is
repeated soon, some times, and then at the next run. Only with an empty table, where there is nothing to take, the
caller gets the error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kainite.base.checkpoint import SHARD_END
from kainite.base.errors import LogUnavailableError, StreamUnavailableError
from kainite.base.logs import event
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import HashRange, Shard, first_hole
from kainite.leases.holding.held_leases import CurrentSettings
from kainite.leases.shard_sync.cleanup import childless, completed, delete_leases
from kainite.leases.shard_sync.create_leases import Begin, create_missing, fill_hash_ranges, list_shards
from kainite.leases.stance import Stance
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.observe.meter import Meter
from kainite.observe.metric import IS_LEADER, PARTIAL_STREAMS, STREAMS_TO_SYNC

logger = logging.getLogger(__name__)

SURE_AFTER = 3
"""Times running that the same hole must be seen (KCL's CONSECUTIVE_HOLES_FOR_TRIGGERING_RECOVERY)."""


@dataclass(frozen=True, slots=True)
class HoleTracker:
    """The hole in the hash keys that was seen last, and how many times running (KCL's ``HashRangeHoleTracker``)."""

    hole: HashRange | None = None
    times: int = 0

    def after(self, hole: HashRange | None) -> HoleTracker:
        """Returns the tracker after one more audit; another hole, or no hole, starts the count again."""
        if hole is None:
            return HoleTracker()
        return HoleTracker(hole, self.times + 1 if hole == self.hole else 1)

    @property
    def sure(self) -> bool:
        """Returns whether the hole was seen often enough to lead to a shard sync."""
        return self.times >= SURE_AFTER


class ShardSyncSchedule:
    """Runs shard sync, audit and cleanup when they are due. One call of :meth:`run_due` at a time."""

    def __init__(
        self,
        table: LeaseTable,
        stream: StreamClient,
        settings: CurrentSettings,
        stance: Callable[[], Stance],
        clock: Callable[[], float],
        meter: Meter,
        begin: Begin | None = None,
    ) -> None:
        self._table = table
        self._stream = stream
        self._settings = settings
        self._stance = stance
        self._clock = clock
        self._meter = meter
        self._begin = begin
        self._first = True
        self._watch = HoleTracker()
        self._failures = 0
        self.due = clock()

    async def run_due(self, leases: Sequence[Lease], leader: str | None) -> bool:
        """Syncs the leases with the stream's shards, and cleans up, where either is due.

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
        try:
            changed = await self._run(leases, leader)
        except (StreamUnavailableError, LogUnavailableError) as error:
            if not leases:
                raise
            self._failed(error)
            return True
        self._first, self._failures = False, 0
        self.due = self._clock() + self._settings.stream.shard_sync
        return changed

    async def _run(self, leases: Sequence[Lease], leader: str | None) -> bool:
        stream, keys = self._settings.stream, completed(leases) if self._settings.leases.cleanup_completed else ()
        if keys:
            await asyncio.to_thread(delete_leases, self._table, keys)
        sharing = self._stance() is Stance.SHARE
        leads = sharing and (not leases or leader in (None, self._settings.leases.worker_id))
        self._meter.observe(IS_LEADER, leads)
        if not leads:
            self._watch = HoleTracker()
            return bool(keys)
        listing: tuple[Shard, ...] = ()
        begin = self._first and not (leases and stream.skip_sync_if_leases)
        if begin or await asyncio.to_thread(self._needs_sync, leases):
            listing = await create_missing(self._table, self._stream, stream, leases, self._begin)
        garbage = await asyncio.to_thread(self._delete_garbage, leases, listing)
        return garbage or bool(keys or listing) or not leases

    def _needs_sync(self, leases: Sequence[Lease]) -> bool:
        active = [lease for lease in leases if lease.checkpoint != SHARD_END]
        if any(lease.hash_range is None for lease in active):
            active = list(fill_hash_ranges(self._table, active, list_shards(self._stream, self._settings.stream)))
        self._watch = self._watch.after(first_hole(lease.hash_range for lease in active if lease.hash_range))
        wanted = not leases or self._watch.sure
        self._meter.observe(PARTIAL_STREAMS, self._watch.hole is not None)
        self._meter.observe(STREAMS_TO_SYNC, wanted)
        if self._watch.hole is not None:
            hole = f"{self._watch.hole.start}-{self._watch.hole.end}"
            event(logger, logging.WARNING, "leases leave a hole", keys=hole, times=self._watch.times, syncing=wanted)
        return wanted

    def _delete_garbage(self, leases: Sequence[Lease], listing: Sequence[Shard]) -> bool:
        suspects = childless(leases) if self._settings.leases.cleanup_completed else ()
        if not suspects:
            return False
        listed = {shard.id for shard in listing or self._stream.list_shards()}
        garbage = [key for key in suspects if key not in listed]
        delete_leases(self._table, garbage)
        return bool(garbage)

    def _failed(self, error: StreamUnavailableError | LogUnavailableError) -> None:
        self._failures += 1
        event(logger, logging.WARNING, "shards not listed", failures=self._failures, error=error)
        soon = self._failures % max(1, self._settings.stream.list_shards_tries) != 0
        stream = self._settings.stream
        self.due = self._clock() + (stream.list_shards_backoff if soon else stream.shard_sync)
