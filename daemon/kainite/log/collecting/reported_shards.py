"""Which shards are to be read, by the reports of daemons that have scanned the lease table at different times.

A report takes the place of the one before it. That is safe where shards are split or merged: an older scan names the
parents in place of their children, and a parent stays where it was closed. A stream that is added has no parent. A
daemon that has scanned the table before the stream had leases does not name it, and does not know that it lacks
anything if it has not read the changed file. So the shards of a stream that any report has named stay, and a stream
whose beginning is being noted counts as named, until no report has named it for :data:`STALE_S`.

=================================================  ==================================================================
event                                              effect
=================================================  ==================================================================
the log's beginning of a stream is to be noted     the stream counts, with a shard that nobody reads
a report names shards of the stream                they take the place of those that were named before
a report does not name the stream                  its shards stay as they are
no report has named it for the time                it is read to its end, or its leases were deleted: it counts no more
another owner                                      nothing is known: the first reports tell
=================================================  ==================================================================

In an application of one stream a report is whole, or there is none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final

from kainite.base.shard_key import ShardKey
from kainite.log.collecting.waiting import NEAR_S

STALE_S: Final = 2 * NEAR_S
"""Seconds since a scan after which no report of it comes: it is made, and then repeated, for NEAR_S each."""


class ReportedShards:
    """The shards that are to be read.

    Args:
        clock: returns seconds that never run backwards, and that run on while the host sleeps.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._named: dict[str, tuple[float, frozenset[str]]] = {}  # by stream: when a report last did, and its shards

    def expect(self, stream: str) -> None:
        """Lets a stream count whose beginning is about to be noted; nothing happens in an application of one."""
        self._forget()
        if stream and stream not in self._named:
            self._named[stream] = self._clock(), frozenset({str(ShardKey(stream, "?"))})

    def after(self, shards: frozenset[str]) -> frozenset[str]:
        """Takes the shards that a report names; returns those that are to be read."""
        self._forget()
        named: dict[str, set[str]] = defaultdict(set)
        for shard in shards:
            named[ShardKey.of(shard).stream].add(shard)
        now = self._clock()
        self._named |= {stream: (now, frozenset(its)) for stream, its in named.items() if stream}
        return shards.union(*(its for _, its in self._named.values()))

    def _forget(self) -> None:
        now = self._clock()
        self._named = {stream: kept for stream, kept in self._named.items() if now - kept[0] < STALE_S}
