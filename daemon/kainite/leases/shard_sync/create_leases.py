"""Creates the leases that the stream's shards need.

Each step may be interrupted anywhere and repeated, also by several workers at once:

* Leases are created for shards that have none, parents before children.
* Leases that lack their shard's hash keys get them.
* At a shard's end its children's leases are created *before* its own goes to SHARD_END. So no crash can leave a
  finished parent without children to go on with.

When the first two are due is decided by :mod:`.schedule`.

**With units of work** nothing may be lost that comes after the log's beginning (:mod:`kainite.worker.beginning`).
KCL creates the first leases of open shards at LATEST, one by one. If a worker dies in between, others read the shards
that have leases; a shard that has none may be split meanwhile; its children then get leases at LATEST, and its own
records are never read. So before a first lease is created here, the log's beginning is made durable
(:data:`~kainite.leases.streams.Begin`), and only then the stream is listed, and after that what was not closed before
the beginning. Each shard that was open at the beginning, or after it, gets a lease, or descends from one that does.
That holds for every listing that is made later, by any worker, whatever happens in between. Of several streams, the log
is also told of those at TRIM_HORIZON: from then on no unit ends before the stream is read, though workers with an older
settings file do not know it (:mod:`kainite.log.collecting.reported_shards`). Where a Java worker creates the leases,
other workers tell the log before (:mod:`.schedule`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kainite.base.checkpoint import AT_TIMESTAMP, TRIM_HORIZON, Checkpoint
from kainite.base.errors import SettingsError, StreamUnavailableError
from kainite.base.logs import event
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import Shard, covers_all_keys, parents_first, roots, unexpected_children
from kainite.leases.lineage import missing_leases, missing_lines
from kainite.leases.streams import Begin, of_streams
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.settings import StreamSettings

logger = logging.getLogger(__name__)


async def create_missing(
    table: LeaseTable,
    stream: StreamClient,
    settings: StreamSettings,
    leases: Sequence[Lease],
    begin: Begin | None = None,
) -> tuple[Shard, ...]:
    """Creates the leases that are missing.

    Args:
        table, stream: the lease table and its stream.
        settings: the initial position for shards that nobody has read.
        leases: all leases of the stream.
        begin: with units of work, notes the log's beginning; None without them.

    Returns:
        The listing of the stream that was used; empty when it was the listing of a time in the past.

    Raises:
        SettingsError: initial position AT_TIMESTAMP without a timestamp.
        StreamUnavailableError: the listing has a hole; the call may be repeated.
        LogUnavailableError: the log's beginning could not be noted; the call may be repeated.
    """
    initial = Checkpoint(settings.initial_position)
    checkpoints = {lease.key: lease.checkpoint for lease in leases}
    if begin is None and not leases and initial == AT_TIMESTAMP:
        await asyncio.to_thread(_create_at_timestamp, table, stream, settings)
        return ()
    shards = await asyncio.to_thread(_listed, stream, settings, first=not leases)
    wanted = missing_leases(shards, checkpoints, initial)
    if begin is not None and initial == TRIM_HORIZON and stream.id and initial in wanted.values():
        await note_beginning(settings, begin)
    elif begin is not None and initial != TRIM_HORIZON and initial in wanted.values():
        begun = await note_beginning(settings, begin)
        shards = await asyncio.to_thread(_listed, stream, settings, first=not leases)
        # In this order: of the whole listing, what was open at the beginning or later is in the later listing too.
        since = await asyncio.to_thread(stream.list_shards, from_timestamp=begun)
        wanted = missing_leases(shards, checkpoints, initial, {shard.id for shard in since})
    await asyncio.to_thread(_create, table, shards, wanted)
    return shards


async def note_beginning(settings: StreamSettings, begin: Begin) -> float:
    """Returns the log's beginning of a stream when it is durable, as ``begin`` does, and raises what that raises.

    Raises:
        SettingsError: as :func:`create_missing`.
    """
    initial = Checkpoint(settings.initial_position)
    return await begin(initial, _timestamp(settings) if initial == AT_TIMESTAMP else None)


async def create_child_leases(
    table: LeaseTable,
    stream: StreamClient,
    settings: StreamSettings,
    lease: Lease,
    children: Sequence[Shard],
    begin: Begin | None = None,
) -> bool:
    """Prepares the end of a shard: creates its children's leases at TRIM_HORIZON, and stores their ids in its own
    lease.

    After a merge, the other parent must have a lease too. Otherwise nothing would hold the child back until that parent
    is read. If it has none, it gets one first: as shard sync would create it, or with its whole line where that waits
    for an ancestor. KCL's ``ShutdownTask`` waits for the lease, and gives its own up now and then. A parent that the
    stream does not have any more gets no lease, here or in KCL, and KCL then waits for ever.

    Returns:
        False when the shard's own lease is gone.

    Raises:
        LogUnavailableError, StreamUnavailableError: as :func:`create_missing`.
    """
    if not children:
        return True
    leases = await _leases_of(table, lease.stream)
    keys = {known.key for known in leases}
    if lease.key not in keys:
        return False
    fresh = [child for child in children if child.id not in keys]
    if lacking := {parent for child in fresh for parent in child.parents} - keys:
        shards = await create_missing(table, stream, settings, leases, begin)
        checkpoints = {known.key: known.checkpoint for known in await _leases_of(table, lease.stream)}
        await asyncio.to_thread(_create, table, shards, missing_lines(shards, checkpoints, lacking))
    await asyncio.to_thread(_create, table, children, {child.id: TRIM_HORIZON for child in children})
    return await asyncio.to_thread(table.set_children, lease, [child.id for child in children])


def fill_hash_ranges(table: LeaseTable, leases: Sequence[Lease], shards: Sequence[Shard]) -> tuple[Lease, ...]:
    """Stores their shard's hash keys in leases that lack them; returns all leases, with the stored hash keys."""
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
    """Returns the stream's shards, in a consistent state.

    Raises:
        StreamUnavailableError: no answer; or a split or merge is under way, so that a parent is still listed as open,
            and ``ignoreUnexpectedChildShards`` is not set. The call may be repeated.
    """
    shards = stream.list_shards(at_timestamp=at_timestamp)
    unexpected = unexpected_children(shards)
    if unexpected and not settings.ignore_unexpected_children:
        raise StreamUnavailableError(
            f"stream {stream.name!r}: a split or merge is under way: the parent of shard {min(unexpected)} is open"
        )
    return tuple(shard for shard in shards if shard.id not in unexpected)


async def _leases_of(table: LeaseTable, stream: str) -> tuple[Lease, ...]:
    return of_streams(await asyncio.to_thread(table.scan), (stream,))


def _create(table: LeaseTable, shards: Sequence[Shard], wanted: Mapping[str, Checkpoint]) -> None:
    for shard in parents_first(shards):
        if shard.id in wanted and table.put_new(Lease.for_shard(shard, wanted[shard.id])):
            event(logger, logging.INFO, "lease created", shard=shard.id, checkpoint=wanted[shard.id])


def _listed(stream: StreamClient, settings: StreamSettings, *, first: bool) -> tuple[Shard, ...]:
    """Returns the stream's shards; for the first leases, they must leave no hole."""
    shards = list_shards(stream, settings)
    if first:
        _refuse_hole(stream, [shard for shard in shards if shard.open])
    return shards


def _create_at_timestamp(table: LeaseTable, stream: StreamClient, settings: StreamSettings) -> None:
    """Creates the first leases for AT_TIMESTAMP as KCL does: of the shards that were open then."""
    shards = list_shards(stream, settings, at_timestamp=_timestamp(settings))
    _refuse_hole(stream, shards)
    _create(table, shards, {shard.id: AT_TIMESTAMP for shard in roots(shards)})


def _timestamp(settings: StreamSettings) -> float:
    if settings.initial_timestamp is None:
        raise SettingsError("initial position AT_TIMESTAMP: set initialPositionInStreamExtended (epoch seconds)")
    return settings.initial_timestamp


def _refuse_hole(stream: StreamClient, shards: Sequence[Shard]) -> None:
    if not covers_all_keys(shards):
        raise StreamUnavailableError(f"stream {stream.name!r}: its listed shards leave a hole in the hash keys")
