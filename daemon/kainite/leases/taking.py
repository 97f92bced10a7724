"""Which leases this worker takes. Pure functions, with the clock passed in.

A lease's age is how long its counter has stood still, by this worker's own clock since it first
saw that counter: no two hosts' clocks are ever compared (KCL's ``DynamoDBLeaseTaker``).

:func:`choose` takes whatever nobody holds, up to a limit. That is right for a single worker and safe, though not
balanced, beside others; sharing leases out among a fleet replaces this one function.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kainite.kinesis.shards import may_start
from kainite.leases.checkpoint import SHARD_END
from kainite.leases.lease import Lease


@dataclass(frozen=True, slots=True)
class Seen:
    """A counter, and since when this worker has seen it stand there (its clock, seconds)."""

    counter: int
    since: float


@dataclass(frozen=True, slots=True)
class Choice:
    """Leases to take, in this order, and when it is worth looking again.

    ``wait`` is how many seconds until another worker's lease may have expired; None when no
    other worker holds any.
    """

    take: tuple[Lease, ...]
    wait: float | None


def observe(seen: Mapping[str, Seen], leases: Sequence[Lease], now: float) -> dict[str, Seen]:
    """What is known about the counters after a scan at ``now``."""

    def look(lease: Lease) -> Seen:
        known = seen.get(lease.key)
        return known if known is not None and known.counter == lease.counter else Seen(lease.counter, now)

    return {lease.key: look(lease) for lease in leases}


def choose(
    leases: Sequence[Lease],
    seen: Mapping[str, Seen],
    held: Collection[str],
    *,
    worker: str,
    failover: float,
    max_leases: int | None,
    now: float,
) -> Choice:
    """Choose among all leases of the table.

    Args:
        leases: the scan, without those that are to be left alone.
        seen: :func:`observe`'s result for that scan.
        held: keys that this worker holds.
        worker: this worker's id; a lease in its name that it does not hold is its own from before a restart.
        failover: seconds of silence after which a lease is anybody's.
        max_leases: how many this worker may hold; None for no limit.
        now: the clock's time.
    """
    free: list[Lease] = []
    waits: list[float] = []
    for lease in leases:
        if lease.key in held or lease.checkpoint == SHARD_END or lease.checkpoint_owner is not None:
            continue
        left = 0.0 if lease.owner in (None, worker) else seen[lease.key].since + failover - now
        if left <= 0:
            free.append(lease)
        else:
            waits.append(left)
    checkpoints = {lease.key: lease.checkpoint for lease in leases}
    free.sort(key=lambda lease: (lease.owner != worker, not may_start(lease.parents, checkpoints), lease.key))
    room = len(free) if max_leases is None else max(0, max_leases - len(held))
    return Choice(tuple(free[:room]), min(waits, default=None))
