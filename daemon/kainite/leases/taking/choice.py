"""Chooses the leases that this worker takes. Pure functions, with the clock and the random numbers passed in.

A lease's age is how long its counter has stood still (:mod:`kainite.base.liveness`). The rules are those of KCL 2.x's
``DynamoDBLeaseTaker`` (docs/kcl.md, *Taking leases*), which Java workers of the same fleet follow:

1. Every worker's part is the number of leases divided by the number of workers, rounded up, and never more than the
   worker may hold. A worker is each owner of a lease that has not expired, and this worker.
2. Leases that have stood still for three failover times are taken whatever the part is (``priority``).
3. Otherwise expired leases are taken, at random, up to this worker's part.
4. Only when none has expired, leases are stolen from the worker that has most: those beyond its part, or one if it has
   exactly its part and this worker lacks two or more.

Differences from KCL:

* A lease that nobody owns counts as expired at once. One that is new and unowned counts as ancient, as in KCL.
* A lease in this worker's own name is its own from before a restart. It is taken at once, within its limit only.
* Leases at SHARD_END are neither counted nor taken: nothing is left to read, and cleanup needs no owner here. Java
  counts them, and takes them to clean them up. The two rules agree: a part without these leases is never larger than
  one with them. So what this worker steals never puts it beyond its part in Java's count, and nothing is stolen back
  and forth. A worker that holds only finished leases is still a worker.
* A lease in a hand-over (KCL 3) is not taken until it has expired.
* A lease that a person has moved to its owner is not stolen from there; it counts as one of the owner's. A worker whose
  part that leaves too small gets another lease of that owner, if there is one.
* Shards that can be read at once are taken before shards that wait for their parents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from kainite.base.checkpoint import SHARD_END
from kainite.base.liveness import Sighting, observe
from kainite.leases.lineage import may_start
from kainite.leases.table.lease import Lease

VERY_OLD = 3
"""After how many failover times a lease is taken by any worker that sees it (KCL's multiplier)."""

EVER = float("-inf")
"""The time since which a new and unowned lease counts as standing still: longer ago than any timeout."""


@dataclass(frozen=True, slots=True)
class TakingLimits:
    """The bounds of what this worker takes.

    Attributes:
        failover: seconds without a movement of the counter after which anybody may take a lease.
        max_leases: how many leases this worker may hold; None for no limit.
        steal_at_once: how many it may steal in one round; 0 when it is not time to steal.
        priority: very old leases are taken beyond this worker's part.
    """

    failover: float
    max_leases: int | None = None
    steal_at_once: int = 1
    priority: bool = True


@dataclass(frozen=True, slots=True)
class TakerCounts:
    """The counts of one round, for metrics.

    Attributes:
        leases, workers: how many there are; leases at SHARD_END are not counted.
        needed: how many leases this worker lacks.
        expired, very_old: leases that anybody may take, and those of them older than three failover times.
        spillover: how many leases of its part go beyond this worker's limit.
    """

    leases: int = 0
    workers: int = 0
    needed: int = 0
    expired: int = 0
    very_old: int = 0
    spillover: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """The leases to take, in this order, and when the next round is worthwhile.

    Attributes:
        take: the leases.
        wait: seconds until another worker's lease may have expired, or one that was left to others may be very old;
            None when neither is to be expected.
        stealing: the leases to take are another live worker's.
        counts: for metrics.
    """

    take: tuple[Lease, ...] = ()
    wait: float | None = None
    stealing: bool = False
    counts: TakerCounts = field(default_factory=TakerCounts)


def observe_leases(seen: Mapping[str, Sighting[int]], leases: Sequence[Lease], now: float) -> dict[str, Sighting[int]]:
    """Returns what is known about the counters after a scan at ``now``."""

    def look(lease: Lease) -> Sighting[int]:
        known = seen.get(lease.key)
        if known is None and lease.owner is None:
            # As in KCL: there is no owner to wait for, so a single worker takes all new leases at once.
            return Sighting(lease.counter, EVER)
        return observe(known, lease.counter, now)

    return {lease.key: look(lease) for lease in leases}


def live_owners(leases: Sequence[Lease], seen: Mapping[str, Sighting[int]], failover: float, now: float) -> set[str]:
    """Returns the owners of leases that have not expired, finished ones included."""
    return {lease.owner for lease in leases if lease.owner is not None and not seen[lease.key].expired(now, failover)}


def choose(
    leases: Sequence[Lease],
    seen: Mapping[str, Sighting[int]],
    held: Collection[str],
    *,
    worker: str,
    limits: TakingLimits,
    now: float,
    rng: Random,
    avoid: Collection[str] = (),
    contested: Collection[str] = (),
) -> Choice:
    """Chooses among all leases of the table.

    Args:
        leases: the whole scan.
        seen: :func:`observe_leases`'s result for that scan.
        held: keys that this worker holds.
        worker: this worker's id.
        limits: its limits.
        now: the clock's time.
        rng: so that workers do not all go for the same leases.
        avoid: keys that are not to be taken for now.
        contested: keys in this worker's name that another process renews: taken when they have expired.
    """
    active = {lease.key: lease for lease in leases if lease.checkpoint != SHARD_END}
    ages = {key: seen[key].age(now) for key in active}
    own = [lease.key for lease in active.values() if lease.owner == worker and lease.checkpoint_owner is None]
    mine = {key for key in active if key in held} | {key for key in own if key not in contested}
    others = {key: lease for key, lease in active.items() if key not in mine and key not in avoid}
    expired = {key: lease for key, lease in others.items() if _free(lease, seen[key], now, limits.failover)}
    alive = [lease for key, lease in others.items() if key not in expired]
    very_old = [lease for key, lease in expired.items() if ages[key] > VERY_OLD * limits.failover]
    workers = {worker, *live_owners(leases, seen, limits.failover, now)}
    part, spillover = _part(len(active), len(workers), limits.max_leases)
    needed = part - len(mine)
    counts = TakerCounts(len(active), len(workers), max(0, needed), len(expired), len(very_old), spillover)

    most = len(active) if limits.max_leases is None else limits.max_leases
    regained = [active[key] for key in sorted(mine) if key not in held and key not in avoid][: max(0, most - len(held))]
    room = max(0, most - len(mine))
    stolen: list[Lease] = []
    if limits.priority and very_old and room:
        free = _in_order(very_old, leases, rng)[:room]
    elif expired:
        free = _in_order(expired.values(), leases, rng)[: max(0, min(needed, room))]
    else:
        free = stolen = _steal(alive, part, min(needed, room), limits.steal_at_once, rng)
    take = (*_in_order(regained, leases, rng), *free)
    left = expired.keys() - {lease.key for lease in free}
    wait = _wait([ages[lease.key] for lease in alive], [ages[key] for key in left], limits) if room else None
    return Choice(take, wait, bool(stolen), counts)


def assigned(leases: Sequence[Lease], held: Collection[str], worker: str, contested: Collection[str] = ()) -> Choice:
    """Chooses exactly what KCL 3's leader has assigned to ``worker`` and no other worker still checkpoints.

    Leases at SHARD_END are taken too: the leader would assign them again and again if nobody renewed them.
    """
    mine = (lease for lease in leases if lease.owner == worker and lease.checkpoint_owner is None)
    return Choice(tuple(lease for lease in mine if lease.key not in held and lease.key not in contested))


def _free(lease: Lease, seen: Sighting[int], now: float, failover: float) -> bool:
    # Unlike KCL, a lease that nobody owns counts as expired at once, so a released lease is taken without a wait.
    return seen.expired(now, failover) or (lease.owner is None and lease.checkpoint_owner is None)


def _part(leases: int, workers: int, max_leases: int | None) -> tuple[int, int]:
    """Returns this worker's part of the leases, and how much of the full part goes beyond its limit."""
    part = 1 if workers >= leases else -(-leases // workers)
    limited = part if max_leases is None else min(part, max_leases)
    return limited, part - limited


def _steal(alive: Sequence[Lease], part: int, needed: int, at_once: int, rng: Random) -> list[Lease]:
    """Chooses leases of the worker that has most of them."""
    counts = Counter(lease.owner for lease in alive if lease.checkpoint_owner is None)
    robbed = {lease.owner for lease in alive if lease.checkpoint_owner is None and not lease.stays}
    if needed <= 0 or at_once <= 0 or not robbed:
        return []
    # Sorted, so that the same table and the same random numbers give the same choice.
    owner = max(sorted(robbed, key=str), key=lambda owner: counts[owner])
    count = counts[owner]
    excess = min(needed, count - part)
    if count == part and needed > 1:
        excess = 1
    theirs = (lease for lease in alive if lease.owner == owner and not lease.stays)
    stealable = sorted(theirs, key=lambda lease: lease.key)
    return rng.sample(stealable, max(0, min(excess, at_once, len(stealable))))


def _in_order(chosen: Iterable[Lease], leases: Sequence[Lease], rng: Random) -> list[Lease]:
    """Returns the chosen leases at random, but those whose shards can be read at once go first."""
    checkpoints = {lease.key: lease.checkpoint for lease in leases}
    shuffled = sorted(chosen, key=lambda lease: lease.key)
    rng.shuffle(shuffled)
    return sorted(shuffled, key=lambda lease: not may_start(lease.parents, checkpoints))


def _wait(alive: Sequence[float], left: Sequence[float], limits: TakingLimits) -> float | None:
    """Returns the seconds until the next of these leases expires or becomes very old; None when none will."""
    waits = [limits.failover - age for age in alive]
    if limits.priority:
        waits += [VERY_OLD * limits.failover - age for age in left]
    return min((wait for wait in waits if wait > 0), default=None)
