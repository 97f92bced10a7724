"""Finds a worker of the application that collects units of work into another log: their files differ. Pure.

The shards of one application are read by its workers together, so parts of one unit of work come to several of them.
Where these collect into different logs, each log gets a part of the unit, and neither ever has all of it. So a worker
takes no lease while another one with another log holds some (:mod:`kainite.leases.taking.taker`), and says so.

======================================  ============================================================================
the other worker                        effect
======================================  ============================================================================
holds a lease, and renews it            this worker takes none, and its ``/health`` and ``kainite status`` say why
holds one, and was seen once            this worker takes none: it may be alive
stopped, or died                        its leases are free, or were not renewed for the failover time: this worker
                                        takes them, and collects on in its own log
began together with this one            both hold leases by then, keep them, take no more, and both say so
is Java's                               nothing is known of its log
======================================  ============================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kainite.base.checkpoint import SHARD_END
from kainite.base.liveness import Sighting
from kainite.leases.table.lease import Lease


@dataclass(frozen=True, slots=True)
class OtherLog:
    """A worker that collects into another log.

    Attributes:
        worker: its id.
        log: the name of its log.
    """

    worker: str
    log: str


def other_log(
    leases: Iterable[Lease], seen: Mapping[str, Sighting[int]], own: str, worker: str, failover: float, now: float
) -> OtherLog | None:
    """Returns the first worker with another log that may be alive; None where there is none.

    Args:
        leases: the whole table.
        seen: the leases' counters, as they were observed.
        own: the name of this worker's log; empty where it collects no units of work.
        worker: this worker.
        failover: seconds after which a counter that stands still shows no reader.
        now: by the observer's clock.
    """
    for lease in leases:
        log, owner = lease.log, lease.owner
        if owner in (None, worker) or log in (None, own) or lease.checkpoint == SHARD_END:
            continue
        if not seen[lease.key].expired(now, failover):
            return OtherLog(str(owner), str(log))
    return None
