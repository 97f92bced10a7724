"""Operations on checkpoints: what a reset would change, what follows from it, and the reset itself.

:mod:`kainite.leases.administration.reset` says how a lease is written, and what a crash leaves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from kainite.base.checkpoint import LATEST, SHARD_END, Checkpoint
from kainite.base.errors import LeaseTableError, StreamError
from kainite.base.liveness import Sighting
from kainite.base.words import are, counted
from kainite.kinesis.named_streams import ReadableShards
from kainite.kinesis.start_position import StartAt
from kainite.leases.administration.report import (
    LeaseRow,
    Pulse,
    ShardState,
    make_rows,
    observe_counters,
    undecided,
)
from kainite.leases.administration.reset import CheckpointChange, apply, plan, select
from kainite.leases.administration.seek_to_timestamp import SeekResult, checkpoint_before
from kainite.leases.administration.shard_reading import patiently
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.log.format.entry import OperationResult
from kainite.operations.operation import OperationOutcome, ResetCheckpoints

SCAN_INTERVAL_S = 0.25
"""Seconds between two scans while counters are observed."""


def observe(
    table: LeaseTable, failover: float, limit: float
) -> tuple[tuple[Lease, ...], Mapping[str, Sighting[int]], float]:
    """Scans until each owner is known to be alive or dead, or for ``limit`` seconds.

    Returns:
        The leases of the last scan, what is known of their counters, and when the scan was made.
    """
    scan, now = table.scan(), time.monotonic()
    seen, end = observe_counters({}, scan, now), now + limit
    while now < end and undecided(scan, seen, now, failover):
        time.sleep(min(SCAN_INTERVAL_S, limit))
        scan, now = table.scan(), time.monotonic()
        seen = observe_counters(seen, scan, now)
    return scan, seen, now


def planned(
    table: LeaseTable, stream: ReadableShards, failover: float, operation: ResetCheckpoints
) -> tuple[CheckpointChange, ...]:
    """Returns what a reset would change, parents first; observes the leases for up to the failover time.

    Args:
        table, stream: the lease table, and the stream.
        failover: the failover time, seconds.
        operation: the reset.

    Raises:
        LeaseTableError: a shard has no lease; or workers hold leases, and the reset is not forced.
        StreamError: a shard does not have the position.
    """
    shard_ids = operation.shards
    everything = select(table.scan(), shard_ids, table.name)
    if operation.force:
        scan = table.scan()
    else:
        # 1 s more, or the last scan comes too early
        scan, seen, now = observe(table, failover, failover + 1)
        _refuse_live(make_rows(scan, seen, {}, now, failover), {lease.key for lease in everything})
    return plan(
        scan,
        select(scan, shard_ids, table.name),
        stream.list_shards(),
        lambda shard_id: _seek(stream, shard_id, operation.to),
        everything=not shard_ids,
    )


def _refuse_live(rows: Sequence[LeaseRow], chosen: set[str]) -> None:
    held = [row for row in rows if row.shard in chosen and row.pulse in (Pulse.FRESH, Pulse.SILENT, Pulse.UNKNOWN)
            and row.state is not ShardState.FINISHED]  # fmt: skip
    if held:
        owners = sorted({str(row.owner) for row in held})
        raise LeaseTableError(
            f"{len(held)} of these leases are renewed by {', '.join(owners)}: stop the workers first, or take the "
            "leases from them with --force"
        )


def _seek(stream: ReadableShards, shard_id: str, wanted: Checkpoint | float) -> SeekResult:
    if not isinstance(wanted, Checkpoint):
        return checkpoint_before(stream, shard_id, wanted)
    if wanted.position is not None:
        start = StartAt("AT_SEQUENCE_NUMBER", wanted.sequence)
        try:
            patiently(stream, "GetShardIterator", lambda: stream.iterator(shard_id, start))
        except StreamError as error:
            raise StreamError(f"shard {shard_id} does not have the sequence number {wanted}: {error}") from error
    return SeekResult(wanted, followed=True)


def effects(changes: Iterable[CheckpointChange], *, collected: Callable[[str], bool]) -> Iterator[str]:
    """Yields for each shard whose checkpoint changes what is read again, and what is never read.

    Args:
        changes: the plan.
        collected: tells whether a shard carries units of work, so that the log knows how far it is collected.
    """
    for change in changes:
        if change.needed:
            effect = _effect(change, collected(change.shard.id)) + (f" ({change.note})" if change.note else "")
            yield f"{change.shard.id}: {change.before or 'no lease'} → {change.after}: {effect}"


def _effect(change: CheckpointChange, collected: bool) -> str:
    if change.after == LATEST and collected:
        return "goes on where the log has collected it to"
    if change.after == LATEST:
        return "records that are not read yet are skipped"
    if change.before is None:
        return "is read from there on"
    if _skips(change):
        return "records between the two positions are skipped"
    return "records behind the new position are delivered again"


def consequences(changes: Iterable[CheckpointChange]) -> Iterator[str]:
    """Yields what follows from a reset of shards that carry units of work; nothing where there is none."""
    changes = tuple(changes)
    needed = [change for change in changes if change.needed]
    if not changes:
        return
    yield (
        "unitsOfWork is on: the serialization log stores how far it has collected each shard. Records up to that "
        "position are only delivered again; what they emit is recognised and not collected twice."
    )
    if any(change.after == LATEST for change in needed):
        yield (
            "A shard at LATEST goes on at the position up to which the log has collected it; a shard without one at "
            "the log's beginning. To leave out records that the log does not have, give a time (--at)."
        )
    if any(_skips(change) for change in needed):
        yield "Records that are skipped are never collected: units of work that they belong to stay incomplete."


def _skips(change: CheckpointChange) -> bool:
    return change.before is not None and change.before != SHARD_END and change.before < change.after


def in_words(changes: Iterable[CheckpointChange]) -> str:
    """Returns the changes as the record has them."""
    return ", ".join(
        f"{change.shard.id}: {change.before or 'no lease'} → {change.after}" for change in changes if change.needed
    )


def reset(
    table: LeaseTable, changes: Iterable[CheckpointChange], tell: Callable[[str, bool], None], *, force: bool
) -> OperationOutcome:
    """Sets checkpoints as planned.

    Args:
        table: the lease table.
        changes: the plan.
        tell: is told what has become of each shard, and whether that is bad news.
        force: whether a lease that was written since the plan is read and reset again.

    Raises:
        LeaseTableError: the table cannot be written; what was told is done.
    """
    needed = [change for change in changes if change.needed]
    details, refused = [], 0
    for change, done in apply(table, needed, force=force):
        made = f"{change.before or 'no lease'} → {change.after}"
        details.append(f"{change.shard.id}: {made if done else 'not reset: its lease was written since it was read'}")
        refused += not done
        tell(details[-1], not done)
    result = OperationResult.REFUSED if needed and refused == len(needed) else OperationResult.DONE
    are_reset = f"of {counted(len(needed), 'shard')} {are(len(needed))} reset"
    sentence = f"{len(needed) - refused} {are_reset}" if needed else "nothing to change"
    return OperationOutcome(result, sentence, None, refused, tuple(details))
