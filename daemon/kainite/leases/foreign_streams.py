"""Finds the streams that other workers read and that this worker's settings do not name: their files differ. Pure.

A worker reads a stream while it owns leases of it and renews them. A fleet's hosts read a changed file one after the
other, so only what lasts is worth a word; nothing is decided by it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kainite.base.checkpoint import SHARD_END
from kainite.base.liveness import Sighting
from kainite.leases.table.lease import Lease


@dataclass(frozen=True, slots=True)
class ForeignStream:
    """A stream that another worker reads.

    Attributes:
        worker: one that reads it.
        since: when that was first seen, by the observer's clock.
    """

    worker: str
    since: float


def foreign_streams(
    before: Mapping[str, ForeignStream],
    leases: Iterable[Lease],
    seen: Mapping[str, Sighting[int]],
    streams: Collection[str],
    worker: str,
    failover: float,
    now: float,
) -> Mapping[str, ForeignStream]:
    """Returns the foreign streams, by their ids.

    Args:
        before: as returned after the scan before.
        leases: the whole table.
        seen: the leases' counters, as they were observed.
        streams: the streams of the settings.
        worker: this worker.
        failover: seconds after which a counter that stands still shows no reader.
        now: by the observer's clock.
    """
    found: dict[str, ForeignStream] = {}
    for lease in leases:
        counter = seen[lease.key]
        is_read = lease.checkpoint != SHARD_END and counter.moved and not counter.expired(now, failover)
        if is_read and lease.owner not in (None, worker) and lease.stream not in streams:
            since = before[lease.stream].since if lease.stream in before else now
            found[lease.stream] = ForeignStream(lease.owner or "", since)
    return found
