"""Syncs the leases of one stream with its shards: creates those that are missing, deletes garbage.

When it is called is decided by :mod:`.schedule`. The audit: the leases that are not at SHARD_END must cover every hash
key of the stream. No leases, or the same hole three times running, lead to a shard sync: a split under way, or a
cleanup, leaves holes that close by themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from kainite.base.checkpoint import SHARD_END
from kainite.base.logs import event
from kainite.kinesis.shards import HashRange, Shard, first_hole
from kainite.leases.shard_sync.cleanup import childless, delete_leases
from kainite.leases.shard_sync.create_leases import create_missing, fill_hash_ranges, list_shards
from kainite.leases.streams import ReadStream
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable

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


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit of one stream has found.

    Attributes:
        partial: the leases leave a hole in the hash keys.
        syncing: a shard sync follows.
    """

    partial: bool
    syncing: bool


class StreamSync:
    """Syncs one stream, call by call. One call of :meth:`run` at a time.

    Attributes:
        audit: what the last call has found; None where it made no audit.
    """

    def __init__(self, table: LeaseTable) -> None:
        self.audit: Audit | None = None
        self._table = table
        self._first = True
        self._watch = HoleTracker()

    def rest(self) -> None:
        """Notes that another worker leads: the holes that this one has seen count no more."""
        self._first, self._watch, self.audit = False, HoleTracker(), None

    async def run(self, stream: ReadStream, leases: Sequence[Lease], *, clean_up: bool) -> bool:
        """Syncs the stream's leases; returns whether the table may have changed.

        Args:
            stream: the stream.
            leases: all leases of the stream.
            clean_up: whether garbage is deleted.

        Raises:
            LeaseTableError: the table cannot be used.
            StreamError: the stream cannot be listed.
            LogUnavailableError: the log's beginning could not be noted.
        """
        self.audit = None
        listing: tuple[Shard, ...] = ()
        begin = self._first and not (leases and stream.settings.skip_sync_if_leases)
        if begin or await asyncio.to_thread(self._needs_sync, stream, leases):
            listing = await create_missing(self._table, stream.client, stream.settings, leases, stream.begin)
        changed = clean_up and await asyncio.to_thread(self._delete_garbage, stream, leases, listing)
        self._first = False
        return changed or bool(listing) or not leases

    def _needs_sync(self, stream: ReadStream, leases: Sequence[Lease]) -> bool:
        active = [lease for lease in leases if lease.checkpoint != SHARD_END]
        if any(lease.hash_range is None for lease in active):
            active = list(fill_hash_ranges(self._table, active, list_shards(stream.client, stream.settings)))
        self._watch = self._watch.after(first_hole(lease.hash_range for lease in active if lease.hash_range))
        wanted = not leases or self._watch.sure
        self.audit = Audit(self._watch.hole is not None, wanted)
        if self._watch.hole is not None:
            hole = f"{self._watch.hole.start}-{self._watch.hole.end}"
            event(logger, logging.WARNING, "leases leave a hole", keys=hole, times=self._watch.times, syncing=wanted,
                  stream=stream.client.id or None)  # fmt: skip
        return wanted

    def _delete_garbage(self, stream: ReadStream, leases: Sequence[Lease], listing: Sequence[Shard]) -> bool:
        suspects = childless(leases)
        if not suspects:
            return False
        listed = {shard.id for shard in listing or stream.client.list_shards()}
        garbage = [key for key in suspects if key not in listed]
        delete_leases(self._table, garbage)
        return bool(garbage)
