"""Keeps the lease table in step with the stream's shards.

Moves that are each safe to break off anywhere and to make again, by several workers at once:

* leases are created for shards that have none, parents before children;
* leases that lack their shard's hash keys are given them;
* at a shard's end its children's leases are created *before* its own goes to SHARD_END, so that no
  crash can leave a finished parent without children to go on with.

When the first two are due is :mod:`.upkeep`'s to say.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kainite.base.checkpoint import AT_TIMESTAMP, TRIM_HORIZON, Checkpoint
from kainite.base.errors import SettingsError, StreamUnavailableError
from kainite.base.logs import event
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import Shard, covers_all_keys, parents_first, roots, unexpected_children
from kainite.leases.lineage import missing_leases
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
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
        shards = _shards_at(stream, settings)
        _create(table, shards, {shard.id: initial for shard in roots(shards)})
        return ()
    shards = list_shards(stream, settings)
    if not leases:
        _refuse_hole(stream, [shard for shard in shards if shard.open])
    _create(table, shards, missing_leases(shards, {lease.key: lease.checkpoint for lease in leases}, initial))
    return shards


def create_child_leases(
    table: LeaseTable, stream: StreamClient, settings: StreamSettings, lease: Lease, children: Sequence[Shard]
) -> bool:
    """Prepare the end of a shard: its children get leases at TRIM_HORIZON, and it gets their names.

    After a merge, the other parent must have a lease too, or nothing would hold the child back
    until that one is read: if it has none, it is given one first, as shard sync would. KCL's
    ``ShutdownTask`` waits for the leader to do that, and gives the lease up now and then. A parent that the
    stream does not have any more gets none, here or there, and KCL then waits for ever.

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


def fill_hash_ranges(table: LeaseTable, leases: Sequence[Lease], shards: Sequence[Shard]) -> tuple[Lease, ...]:
    """Give leases that lack them their shard's hash keys; returns all leases, with what is known now."""
    known = {shard.id: shard.hash_range for shard in shards}

    def fill(lease: Lease) -> Lease:
        keys = known.get(lease.key)
        if lease.hash_range is not None or keys is None or not table.set_hash_range(lease.key, keys):
            return lease
        event(logger, logging.INFO, "lease given its hash keys", shard=lease.key)
        return replace(lease, hash_range=keys)

    return tuple(map(fill, leases))


def list_shards(
    stream: StreamClient, settings: StreamSettings, *, at_timestamp: float | None = None
) -> tuple[Shard, ...]:
    """The stream's shards, in a consistent state.

    Raises:
        StreamUnavailableError: no answer; or a split or merge is under way, so that a parent is still listed as open,
            and ``ignoreUnexpectedChildShards`` is not set. The call may be made again.
    """
    shards = stream.list_shards(at_timestamp=at_timestamp)
    unexpected = unexpected_children(shards)
    if unexpected and not settings.ignore_unexpected_children:
        raise StreamUnavailableError(
            f"stream {stream.name!r}: a split or merge is under way: the parent of shard {min(unexpected)} is open"
        )
    return tuple(shard for shard in shards if shard.id not in unexpected)


def _create(table: LeaseTable, shards: Sequence[Shard], wanted: Mapping[str, Checkpoint]) -> None:
    for shard in parents_first(shards):
        if shard.id in wanted and table.put_new(Lease.for_shard(shard, wanted[shard.id])):
            event(logger, logging.INFO, "lease created", shard=shard.id, checkpoint=wanted[shard.id])


def _shards_at(stream: StreamClient, settings: StreamSettings) -> tuple[Shard, ...]:
    if settings.initial_timestamp is None:
        raise SettingsError("initial position AT_TIMESTAMP: set initialPositionInStreamExtended (epoch seconds)")
    shards = list_shards(stream, settings, at_timestamp=settings.initial_timestamp)
    _refuse_hole(stream, shards)
    return shards


def _refuse_hole(stream: StreamClient, shards: Sequence[Shard]) -> None:
    if not covers_all_keys(shards):
        raise StreamUnavailableError(f"stream {stream.name!r}: its listed shards leave a hole in the hash keys")
