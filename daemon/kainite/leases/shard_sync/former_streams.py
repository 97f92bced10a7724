"""Deletes the leases of streams that are read no more (KCL's ``FormerStreamsLeasesDeletionStrategy``).

A stream is *former* once none of its leases was written, by any worker, for ``formerStreamLeasesMillis``, and the
stream is not in the settings of the worker that leads. KCL counts from when its leader first misses the stream, and
says that hosts with different lists are not safe. Here a worker that still reads the stream renews its leases, and so
keeps them.

=============================================  =======================================================================
what happens meanwhile                         effect
=============================================  =======================================================================
the stream is put back                         its leases are taken again, at their checkpoints
another worker leads                           the time begins anew: it is counted in memory
a crash between two deletions                  the next leader deletes the rest
a host with an old file reads it               its renewals begin the time anew
a lease is taken after the leader's scan       it stays: a lease is deleted only as it was scanned, by its counter
=============================================  =======================================================================

Where the watermark ends units (``uowEnd=watermark``), a lease that is not at SHARD_END stays: without it the watermark
would pass records of its shard that nobody has read, and units would be applied without them. The watermark stands
meanwhile, and ``/health`` names the shard.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

from kainite.base.checkpoint import SHARD_END
from kainite.base.liveness import Sighting, observe
from kainite.base.logs import event
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable

logger = logging.getLogger(__name__)


class FormerStreams:
    """Watches the streams that the settings do not name. :meth:`clean_up` blocks; one call at a time.

    Args:
        table: the lease table.
        keep_unread: whether leases that are not at SHARD_END stay.
        clock: seconds, never running backwards.
    """

    def __init__(self, table: LeaseTable, keep_unread: bool, clock: Callable[[], float]) -> None:
        self._table = table
        self._keep_unread = keep_unread
        self._clock = clock
        self._seen: dict[str, Sighting[tuple[tuple[str, int], ...]]] = {}

    def clean_up(self, leases: Sequence[Lease], streams: Collection[str], after: float) -> bool:
        """Deletes the leases of former streams; returns whether there were any.

        Args:
            leases: the whole table.
            streams: the streams of the settings.
            after: seconds without a write after which a stream is former.
        """
        others: dict[str, list[Lease]] = defaultdict(list)
        for lease in leases:
            if lease.stream not in streams:
                others[lease.stream].append(lease)
        now, before = self._clock(), self._seen
        self._seen = {
            stream: observe(before.get(stream), tuple(sorted((lease.key, lease.counter) for lease in found)), now)
            for stream, found in others.items()
        }
        for stream in self._seen.keys() - before.keys():
            event(logger, logging.WARNING, "leases of another stream", stream=stream, leases=len(others[stream]),
                  deleted_after=after)  # fmt: skip
        former = [stream for stream, seen in self._seen.items() if seen.expired(now, after)]
        going = [lease for stream in former for lease in others[stream] if self._may_go(lease)]
        for lease in going:
            if self._table.delete_unchanged(lease):
                event(logger, logging.INFO, "lease deleted", shard=lease.key)
        return bool(going)

    def _may_go(self, lease: Lease) -> bool:
        return lease.checkpoint == SHARD_END or not self._keep_unread
