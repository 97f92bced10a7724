"""The rows of ``kainite leases``: from leases, from the movement of their counters, and from measured lags. Pure.

KCL's lease has no timestamp. So whether its owner is alive is seen only by two scans (:mod:`kainite.base.liveness`): a
counter that moved is fresh, one that stood still for the failover time has expired, and a single scan says nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kainite.base.checkpoint import SHARD_END, Checkpoint
from kainite.base.liveness import Sighting, observe
from kainite.base.words import counted
from kainite.kinesis.shards import MAX_HASH_KEY
from kainite.leases.lineage import may_start
from kainite.leases.table.lease import Lease

SHORT_DIGITS = 14
"""The number of last digits that the table shows of a sequence number: the first digits are alike in a shard."""


class Pulse(StrEnum):
    """The state of a lease's owner, as the lease's counter shows it."""

    UNKNOWN = "unknown"  # observed once
    FRESH = "fresh"  # the counter moved
    SILENT = "silent"  # the counter has not moved yet
    EXPIRED = "expired"  # the counter stood still for the failover time: anybody may take the lease


class ShardState(StrEnum):
    """The state of a shard."""

    READING = "being read"
    WAITING = "waiting for its parents"
    UNOWNED = "unowned"
    EXPIRED = "expired"
    HANDING_OVER = "handing over"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Lag:
    """Milliseconds behind the newest record; None when there is nothing to measure, or for ``cause``."""

    millis: int | None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """One lease.

    Attributes (these are the keys of ``--json``):
        shard, state, owner, checkpoint_owner, checkpoint, sub, switches, parents, children: as in the lease.
        pulse: whether the counter moves; None when nobody owns the lease.
        silent_for: seconds since the counter was last seen to move, or first seen; None when nobody owns the lease.
        share: the shard's share of the stream's hash keys, 0 to 1.
        lag_millis: how far the checkpoint is behind the shard's newest record; None when it was not measured.
        lag_cause: why it could not be measured.
        asked: what a person asks of the owner at the moment, and how far it is; None for nothing.
        moved_to: the worker that a person has moved the lease to; None for none.
        log: the log into which the owner collects units of work; None where it has noted none.
    """

    shard: str
    state: ShardState
    owner: str | None
    checkpoint_owner: str | None
    pulse: Pulse | None
    silent_for: float | None
    checkpoint: str
    sub: int
    switches: int
    parents: tuple[str, ...]
    children: tuple[str, ...]
    share: float | None
    lag_millis: int | None = None
    lag_cause: str | None = None
    asked: str | None = None
    moved_to: str | None = None
    log: str | None = None


def observe_counters(
    seen: Mapping[str, Sighting[int]], leases: Sequence[Lease], now: float
) -> dict[str, Sighting[int]]:
    """Returns what is known about the counters after a scan at ``now``.

    Unlike the taker's rule, a lease that is new and unowned is of age 0: only owned leases have a :class:`Pulse`.
    """
    return {lease.key: observe(seen.get(lease.key), lease.counter, now) for lease in leases}


def pulse_of(lease: Lease, seen: Sighting[int], now: float, failover: float) -> Pulse | None:
    """Returns what a lease's counter says about its owner; None when nobody owns the lease."""
    if lease.owner is None:
        return None
    if seen.expired(now, failover):
        return Pulse.EXPIRED
    if seen.moved:
        return Pulse.FRESH
    return Pulse.SILENT if seen.age(now) > 0 else Pulse.UNKNOWN


def undecided(leases: Sequence[Lease], seen: Mapping[str, Sighting[int]], now: float, failover: float) -> list[Lease]:
    """Returns the owned leases of unfinished shards that are neither seen to be renewed nor expired yet."""
    return [
        lease
        for lease in leases
        if lease.checkpoint != SHARD_END
        and pulse_of(lease, seen[lease.key], now, failover) in (Pulse.UNKNOWN, Pulse.SILENT)
    ]


def make_rows(
    leases: Sequence[Lease], seen: Mapping[str, Sighting[int]], lags: Mapping[str, Lag], now: float, failover: float
) -> tuple[LeaseRow, ...]:
    """Returns the rows, sorted by shard.

    Args:
        leases: a scan of the table.
        seen: :func:`observe_counters`'s result for that scan.
        lags: measured lags by shard; may be empty.
        now: the time of that scan, by the clock of ``seen``, seconds.
        failover: seconds after which a lease whose counter stands still has expired.
    """
    checkpoints = {lease.key: lease.checkpoint for lease in leases}
    return tuple(
        _row(lease, seen[lease.key], lags.get(lease.key, Lag(None)), checkpoints, now, failover)
        for lease in sorted(leases, key=lambda lease: lease.key)
    )


def _row(
    lease: Lease, seen: Sighting[int], lag: Lag, checkpoints: Mapping[str, Checkpoint], now: float, failover: float
) -> LeaseRow:
    pulse = pulse_of(lease, seen, now, failover)
    return LeaseRow(
        shard=lease.key,
        state=_state(lease, pulse, checkpoints),
        owner=lease.owner,
        checkpoint_owner=lease.checkpoint_owner,
        pulse=pulse,
        silent_for=None if pulse is None else round(seen.age(now), 3),
        checkpoint=lease.checkpoint.sequence,
        sub=lease.checkpoint.sub,
        switches=lease.switches,
        parents=tuple(sorted(lease.parents)),
        children=tuple(sorted(lease.children)),
        share=_share(lease),
        lag_millis=lag.millis,
        lag_cause=lag.cause,
        asked=_asked(lease),
        moved_to=lease.moved_to,
        log=lease.log,
    )


def _state(lease: Lease, pulse: Pulse | None, checkpoints: Mapping[str, Checkpoint]) -> ShardState:
    if lease.checkpoint == SHARD_END:
        return ShardState.FINISHED
    if lease.checkpoint_owner is not None:
        return ShardState.HANDING_OVER
    if lease.owner is None:
        return ShardState.UNOWNED
    if pulse is Pulse.EXPIRED:
        return ShardState.EXPIRED
    return ShardState.READING if may_start(lease.parents, checkpoints) else ShardState.WAITING


def _asked(lease: Lease) -> str | None:
    request = lease.request
    if request is None or request.ended:
        return None
    return f"{request.what}{f' to {request.to}' if request.to else ''}, {request.state}"


def _share(lease: Lease) -> float | None:
    keys = lease.hash_range
    return None if keys is None else (keys.end - keys.start + 1) / (MAX_HASH_KEY + 1)


def short(checkpoint: Checkpoint) -> str:
    """Returns a checkpoint in few characters: the sequence number's last digits, and the sub-sequence number."""
    if checkpoint.is_sentinel or len(checkpoint.sequence) <= SHORT_DIGITS:
        return str(checkpoint)
    return "…" + str(checkpoint)[len(checkpoint.sequence) - SHORT_DIGITS :]


def workers(rows: Sequence[LeaseRow]) -> dict[str, int]:
    """Returns how many unfinished shards each worker holds, sorted by worker."""
    held = Counter(row.owner for row in rows if row.owner is not None and row.state is not ShardState.FINISHED)
    return dict(sorted(held.items()))


def summary(rows: Sequence[LeaseRow]) -> str:
    """Returns one line: the workers with their number of leases, and the shards that nobody reads."""
    held = workers(rows)
    named = ", ".join(f"{worker} {count}" for worker, count in held.items())
    parts = [f"{counted(len(held), 'worker')}{': ' if named else ''}{named}"]
    states = Counter(row.state for row in rows)
    others = (ShardState.UNOWNED, ShardState.EXPIRED, ShardState.WAITING, ShardState.HANDING_OVER, ShardState.FINISHED)
    parts += [f"{states[state]} {state}" for state in others if states[state]]
    return f"{counted(len(rows), 'lease')}; " + "; ".join(parts)
