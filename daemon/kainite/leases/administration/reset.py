"""Sets checkpoints by hand: first the plan (pure), then the writes.

A reset acts as a worker for a moment. It takes the lease, on the condition that its counter has not moved since it
was read, stores the checkpoint and releases the lease. So a running worker of any kind loses the lease at its next
write and takes it again at the new position. Until that worker notices (a third of the failover time, at most all
of it), another worker may already begin at the new position, and both read the shard. For that reason, and because
records are delivered twice, a reset refuses while a counter moves, unless it is forced.

Shards are written parents first, so a child that waits for its parents again cannot begin too early. A crash in
between leaves some leases reset and the others unchanged. One lease may be left in the name of :data:`RESETTER`;
it expires like a dead worker's. The same command finishes the reset.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import LeaseTableError
from kainite.kinesis.shards import Shard, parents_first
from kainite.leases.administration.seek_to_timestamp import SeekResult
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable

RESETTER = "kainite-leases-reset"
"""The worker id under which a lease is held while it is reset."""

FORCED_TRIES = 10
"""The most times that a forced reset follows a counter that a running worker raises again and again."""

SeekShard = Callable[[str], SeekResult]
"""Finds the new position of a shard, given by its id, and whether there is anything to read from there on."""


@dataclass(frozen=True, slots=True)
class CheckpointChange:
    """The planned change of one shard.

    Attributes:
        shard: the shard, as the stream lists it, or as its lease describes it.
        lease: the lease as it was read; None where a lease is to be created.
        after: the new checkpoint.
        note: a remark for the operator; empty for none.
    """

    shard: Shard
    lease: Lease | None
    after: Checkpoint
    note: str = ""

    @property
    def before(self) -> Checkpoint | None:
        """Returns the checkpoint as it was read; None where there is no lease."""
        return None if self.lease is None else self.lease.checkpoint

    @property
    def needed(self) -> bool:
        """Returns whether the checkpoint changes."""
        return self.before != self.after


def select(leases: Sequence[Lease], shard_ids: Collection[str], table: str) -> tuple[Lease, ...]:
    """Returns the leases of the named shards; of all shards when none is named.

    Raises:
        LeaseTableError: there is no lease at all, or none of a named shard.
    """
    unknown = sorted(set(shard_ids) - {lease.key for lease in leases})
    if unknown:
        raise LeaseTableError(f"lease table {table!r} has no lease of shard {', '.join(unknown)}: see kainite leases")
    if not leases:
        raise LeaseTableError(f"lease table {table!r} has no leases yet: a daemon makes them when it first runs")
    return tuple(lease for lease in leases if not shard_ids or lease.key in shard_ids)


def plan(
    leases: Sequence[Lease], chosen: Sequence[Lease], listed: Sequence[Shard], seek: SeekShard, *, everything: bool
) -> tuple[CheckpointChange, ...]:
    """Returns the changes that a reset would make, parents first.

    Args:
        leases: the whole table.
        chosen: the leases to reset.
        listed: the stream's shards.
        seek: finds the new position of a shard.
        everything: all shards are to be reset. Shards that the stream still has, and whose leases were deleted because
            they were finished, then get new leases where there is something to read.
    """
    by_id = {shard.id: shard for shard in listed}
    shards = {lease.key: by_id.get(lease.key) or _shard_of(lease) for lease in chosen}
    known = {lease.key: lease for lease in leases}
    if everything:
        shards |= {shard.id: shard for shard in listed if shard.id not in known}
    changes = (
        _change(shard, known.get(shard.id), seek, gone=shard.id not in by_id)
        for shard in parents_first(shards.values())
    )
    return tuple(_warned(change, known, shards) for change in changes if change is not None)


def _change(shard: Shard, lease: Lease | None, seek: SeekShard, *, gone: bool) -> CheckpointChange | None:
    finished = lease is None or lease.checkpoint == SHARD_END
    if gone and lease is not None:
        return CheckpointChange(shard, lease, lease.checkpoint, "left alone: the stream does not list it any more")
    sought = seek(shard.id)
    if not finished:
        return CheckpointChange(shard, lease, sought.checkpoint)
    if not sought.followed or sought.checkpoint == LATEST:
        return None if lease is None else CheckpointChange(shard, lease, SHARD_END, "left alone: no record follows")
    return CheckpointChange(shard, lease, sought.checkpoint, "read again" if lease else "gets a lease again")


def _warned(change: CheckpointChange, leases: Mapping[str, Lease], chosen: Collection[str]) -> CheckpointChange:
    """Returns the change, with a note when children of the shard have begun and are not reset with it."""
    ahead = sorted(
        lease.key
        for lease in leases.values()
        if change.shard.id in lease.parents
        and lease.key not in chosen
        and lease.checkpoint not in (TRIM_HORIZON, AT_TIMESTAMP)
    )
    if not ahead or not change.needed:
        return change
    warning = f"its records are delivered after those of its children {', '.join(ahead)}, which have begun"
    note = f"{change.note}; {warning}" if change.note else warning
    return CheckpointChange(change.shard, change.lease, change.after, note)


def _shard_of(lease: Lease) -> Shard:
    return Shard(lease.key, tuple(sorted(lease.parents)), lease.hash_range)


def apply(
    table: LeaseTable, changes: Sequence[CheckpointChange], *, force: bool
) -> Iterator[tuple[CheckpointChange, bool]]:
    """Makes the changes one by one; yields each with whether it was made.

    A lease that was written since it was read is left unchanged; with ``force`` it is read and reset again.

    Raises:
        LeaseTableError: the table cannot be written; the changes that were yielded are made.
    """
    for change in changes:
        if change.lease is None:
            yield change, table.put_new(Lease.for_shard(change.shard, change.after))
        else:
            yield change, _reset(table, change.lease, change.after, FORCED_TRIES if force else 1)


def _reset(table: LeaseTable, lease: Lease, checkpoint: Checkpoint, tries: int) -> bool:
    for _ in range(tries):
        if (taken := table.take(lease, RESETTER)) is not None:
            stored = table.checkpoint(taken, checkpoint)
            return stored is not None and table.evict(stored)
        again = table.get(lease.key) if tries > 1 else None
        if again is None:
            return False
        lease = again
    return False


def parse_position(text: str) -> Checkpoint:
    """Reads a position as ``--to`` takes it: a sentinel, or a sequence number with or without ``.`` and a sub-sequence
    number.

    Raises:
        ValueError: the text is none of these.
    """
    if text in (TRIM_HORIZON.sequence, LATEST.sequence):
        return Checkpoint(text)
    sequence, _, sub = text.partition(".")
    if not sequence.isdecimal() or not (sub.isdecimal() or text == sequence):
        raise ValueError(f"{text!r} is neither TRIM_HORIZON, LATEST nor a sequence number")
    return Checkpoint(sequence, int(sub or 0))
