"""Keeps the lease table in step with the stream's shards.

Three moves, each safe to break off anywhere and to make again, by several workers at once:

* leases are created for shards that have none, parents before children;
* at a shard's end its children's leases are created *before* its own goes to SHARD_END, so that no
  crash can leave a finished parent without children to go on with;
* a finished shard's lease is deleted when its children are under way and its own parents' leases
  are gone, so oldest first: deleted earlier, it would be taken for a shard nobody has read.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence

from kainite.errors import SettingsError, StreamUnavailableError
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import Shard, covers_all_keys, missing_leases, parents_first, roots
from kainite.leases.checkpoint import AT_TIMESTAMP, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.leases.lease import Lease
from kainite.leases.table import LeaseTable
from kainite.logs import event
from kainite.settings import StreamSettings

logger = logging.getLogger(__name__)


def create_missing(
    table: LeaseTable, stream: StreamClient, settings: StreamSettings, leases: Sequence[Lease]
) -> tuple[Shard, ...]:
    """Create the leases that are missing.

    Args:
        table, stream: what to keep in step.
        settings: where to begin with shards that nobody has read.
        leases: the table as it is.

    Returns:
        The listing of the stream that was used; empty when it was one of a moment in the past.

    Raises:
        SettingsError: initial position AT_TIMESTAMP without a timestamp.
        StreamUnavailableError: the listing has a hole; the call may be made again.
    """
    initial = Checkpoint(settings.initial_position)
    if not leases and initial == AT_TIMESTAMP:
        shards = _shards_at(stream, settings.initial_timestamp)
        _create(table, shards, {shard.id: initial for shard in roots(shards)})
        return ()
    shards = stream.list_shards()
    if not leases:
        _refuse_hole(stream, [shard for shard in shards if shard.open])
    _create(table, shards, missing_leases(shards, {lease.key: lease.checkpoint for lease in leases}, initial))
    return shards


def begin_children(
    table: LeaseTable, stream: StreamClient, settings: StreamSettings, lease: Lease, children: Sequence[Shard]
) -> bool:
    """Prepare the end of a shard: its children get leases at TRIM_HORIZON, and it gets their names.

    After a merge, the other parent must have a lease too, or nothing would hold the child back
    until that one is read: if it has none, it is given one first.

    Returns:
        False when the shard's own lease is gone.
    """
    if not children:
        return True
    leases = table.scan()
    keys = {known.key for known in leases}
    if lease.key not in keys:
        return False
    if any(parent not in keys for child in children for parent in child.parents):
        create_missing(table, stream, settings, leases)
    _create(table, children, {child.id: TRIM_HORIZON for child in children})
    return table.set_children(lease, [child.id for child in children])


def delete_finished(table: LeaseTable, leases: Sequence[Lease], listed: Collection[str]) -> tuple[str, ...]:
    """Delete what :func:`finished` names; returns the keys."""
    keys = finished(leases, listed)
    for key in keys:
        table.delete(key)
        event(logger, logging.INFO, "lease deleted", shard=key)
    return keys


def finished(leases: Sequence[Lease], listed: Collection[str]) -> tuple[str, ...]:
    """Keys of leases that are not needed any more.

    Args:
        leases: the whole table.
        listed: ids of the shards that the stream still has.
    """
    by_key = {lease.key: lease for lease in leases}
    return tuple(lease.key for lease in leases if lease.checkpoint == SHARD_END and _done_with(lease, by_key, listed))


def _done_with(lease: Lease, by_key: Mapping[str, Lease], listed: Collection[str]) -> bool:
    if any(parent in by_key for parent in lease.parents):
        return False
    if not lease.children:
        return lease.key not in listed
    children = [by_key.get(child) for child in lease.children]
    return all(child is not None and child.checkpoint not in (TRIM_HORIZON, AT_TIMESTAMP) for child in children)


def _create(table: LeaseTable, shards: Sequence[Shard], wanted: Mapping[str, Checkpoint]) -> None:
    for shard in parents_first(shards):
        if shard.id in wanted and table.put_new(Lease.for_shard(shard, wanted[shard.id])):
            event(logger, logging.INFO, "lease created", shard=shard.id, checkpoint=wanted[shard.id])


def _shards_at(stream: StreamClient, timestamp: float | None) -> tuple[Shard, ...]:
    if timestamp is None:
        raise SettingsError("initial position AT_TIMESTAMP: set initialPositionInStreamExtended (epoch seconds)")
    shards = stream.list_shards(at_timestamp=timestamp)
    _refuse_hole(stream, shards)
    return shards


def _refuse_hole(stream: StreamClient, shards: Sequence[Shard]) -> None:
    if not covers_all_keys(shards):
        raise StreamUnavailableError(f"stream {stream.name!r}: its listed shards leave a hole in the hash keys")
