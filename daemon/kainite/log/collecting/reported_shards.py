"""Which shards are to be read, by the reports of daemons that have scanned the lease table at different times.

A report takes the place of the one before it. That is safe where shards are split or merged: an older scan names the
parents in place of their children, and a parent stays where it was closed. A stream that is added has no parent. A
daemon that has scanned the table before the stream had leases does not name it, and does not know that it lacks
anything if it has not read the changed file. Two things keep the stream among those that are to be read:

* Before its first lease is created, the log notes that the stream is *awaited*
  (:attr:`~kainite.log.state.folded.FoldedLog.awaited`), which is durable. An awaited stream counts, with a shard that
  nobody reads. Who creates leases notes it, and each daemon that knows the stream and finds no lease of it: a Java
  worker that leads notes nothing.
* The shards of a stream that any report has named stay, until no report has named it for :data:`STALE_S`.

A daemon reports only while the leases of each stream that it finds in the table leave out no hash key
(:func:`~kainite.leases.streams.all_covered`). So a report that names a stream shows that all its first leases existed
at its scan, and they do at each later scan, unless they were deleted. Reports of scans from before the stream was
awaited end within :data:`STALE_S`. A report that names it so long after the first one is of a later scan; then the
stream is awaited no more.

States of a stream in the log: *unknown* → *awaited* (``started``) → *leased* (``leased``) → *awaited*, where it begins
again. ``kainite leases forget`` also makes an awaited stream leased, and deletes the leases: while reports of scans
from before still name the stream, it may be added again.

Invariant: while a stream is awaited, or a report by a scan from before its leases may still come, it is among the
shards that :meth:`ReportedShards.after` returns, so the watermark does not pass what nobody has read there.

=================================================  ==================================================================
a crash, or another owner                          leaves
=================================================  ==================================================================
before ``started`` is durable                      no lease of the stream: its creator waits for the note. Where a
                                                   Java worker has created some before, reports of scans from before
                                                   them do not name the stream, and units may end without it
when it is durable, before all leases are made     the stream awaited, whoever owns the log, and whatever files the
                                                   daemons have read, until a daemon with the new file creates the rest
when all leases are made, before a report names    the stream awaited; the next report with it names its shards
the stream
when a report has named it, before ``leased``      the stream awaited: it counts until a report names it to the new
                                                   owner, and for STALE_S from then on
when ``leased`` is durable                         nothing to remember: no report by an older scan comes any more
=================================================  ==================================================================

A stream of which no report has named a shard for STALE_S, and which is not awaited, counts no more: it is read to its
end, or its leases were deleted. In an application of one stream a report is whole, or there is none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from kainite.base.shard_key import ShardKey
from kainite.log.collecting.waiting import NEAR_S

STALE_S: Final = 2 * NEAR_S
"""Seconds since a scan after which no report of it comes: it is made, and then repeated, for NEAR_S each."""


@dataclass(frozen=True, slots=True)
class _Named:
    """A stream that reports name.

    Attributes:
        first: when the first report named it.
        last: when a report last named it.
        shards: its shards, by that report.
    """

    first: float
    last: float
    shards: frozenset[str]


class ReportedShards:
    """The shards that are to be read.

    Args:
        clock: returns seconds that never run backwards, and that run on while the host sleeps.
        awaited: returns the streams that the log awaits.
    """

    def __init__(self, clock: Callable[[], float], awaited: Callable[[], Collection[str]] = frozenset) -> None:
        self._clock = clock
        self._awaited = awaited
        self._named: dict[str, _Named] = {}  # by stream

    def after(self, shards: frozenset[str]) -> frozenset[str]:
        """Takes the shards that a report names; returns those that are to be read."""
        self._forget()
        named: dict[str, set[str]] = defaultdict(set)
        for shard in shards:
            named[ShardKey.of(shard).stream].add(shard)
        now = self._clock()
        for stream, its in named.items():
            if stream:
                known = self._named.get(stream)
                self._named[stream] = _Named(known.first if known else now, now, frozenset(its))
        return shards.union(self.unread(), *(known.shards for known in self._named.values()))

    def unread(self) -> frozenset[str]:
        """Returns a shard that nobody reads for each awaited stream that no report has named."""
        return frozenset(str(ShardKey(stream, "?")) for stream in self._awaited() if stream not in self._named)

    def expect_anew(self, stream: str) -> None:
        """Forgets that reports have named a stream which is awaited from now on: its leases may be gone since."""
        self._named.pop(stream, None)

    def leased(self) -> frozenset[str]:
        """Returns the awaited streams that every report names from now on."""
        self._forget()
        known = {stream: self._named.get(stream) for stream in self._awaited()}
        return frozenset(stream for stream, its in known.items() if its is not None and its.last - its.first >= STALE_S)

    def _forget(self) -> None:
        now = self._clock()
        self._named = {stream: known for stream, known in self._named.items() if now - known.last < STALE_S}
