"""Decides by the lineage of shards which shards need a lease and which may be read. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kainite.base.checkpoint import LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.kinesis.shards import Shard, known_parents, parents_first


def may_start(parents: Iterable[str], checkpoints: Mapping[str, Checkpoint]) -> bool:
    """Returns whether a shard may be read: a parent that has a lease holds it back until SHARD_END."""
    return all(checkpoints.get(parent, SHARD_END) == SHARD_END for parent in parents)


def missing_leases(
    shards: Sequence[Shard],
    checkpoints: Mapping[str, Checkpoint],
    initial: Checkpoint,
    since: Collection[str] | None = None,
) -> dict[str, Checkpoint]:
    """Returns the leases to create, with their first checkpoints, parents before children.

    For each open shard without a lease (docs/kcl.md, *Shard sync*):

    * An ancestor has a lease: the shard is reached through the ancestor's line, so only the leases that are missing
      beside that line are created.
    * No ancestor has a lease: the leases of the oldest ones among the shard and those of its ancestors that are to be
      read are created. As in KCL, all ancestors are to be read for TRIM_HORIZON and AT_TIMESTAMP, none for LATEST.

    Beyond KCL, a shard without a lease whose parents' leases all stand at SHARD_END gets one at TRIM_HORIZON. The
    worker of the parents creates that lease before SHARD_END, so this repairs a lease that was lost.

    Args:
        shards: the whole listing of the stream.
        checkpoints: the checkpoint of each existing lease, by shard.
        initial: the sentinel for shards that nobody has read yet.
        since: the shards that are to be read whatever ``initial`` is, where that is known: the open ones, and those
            that were closed after the time at which reading begins. None means what KCL does.
    """
    by_id = {shard.id: shard for shard in shards}
    if since is None:
        since = () if initial == LATEST else by_id.keys()
    plans: dict[str, _Plan] = {}
    for shard in parents_first(shards):
        parents = known_parents(shard, by_id)
        if not any(plans[parent].descends for parent in parents):
            parents = [parent for parent in parents if parent in since]
        plans[shard.id] = _plan(
            shard, [plans[p] for p in parents], [checkpoints.get(p) for p in parents], checkpoints, initial
        )
    wanted: dict[str, Checkpoint] = {}
    for shard in shards:
        if shard.open and shard.id not in checkpoints:
            wanted |= plans[shard.id].create
    return {shard_id: wanted[shard_id] for shard_id in plans if shard_id in wanted}


def missing_lines(
    shards: Sequence[Shard], checkpoints: Mapping[str, Checkpoint], wanted: Iterable[str]
) -> dict[str, Checkpoint]:
    """Returns the leases that hold back the descendants of some shards, where these shards have no lease themselves.

    Where an ancestor is still read, shard sync creates no lease below it: each comes when its parents end. But a child
    of two such shards can come before one of its parents has its lease, and nothing would hold it back. So the parent
    gets its lease at once, and so do its ancestors, up to those that have one.

    Args:
        shards: the whole listing of the stream; what it does not have any more gets no lease.
        checkpoints: of each existing lease, by shard, those of :func:`missing_leases` included.
        wanted: the shards.
    """
    by_id = {shard.id: shard for shard in shards}
    found: dict[str, Checkpoint] = {}
    looking = list(wanted)
    while looking:
        shard = by_id.get(looking.pop())
        if shard is not None and shard.id not in checkpoints and shard.id not in found:
            found[shard.id] = TRIM_HORIZON
            looking += shard.parents
    return found


@dataclass(frozen=True, slots=True)
class _Plan:
    """The leases to create so that a shard is reached; ``descends``: an ancestor or the shard itself has a lease."""

    descends: bool
    create: dict[str, Checkpoint]


def _plan(
    shard: Shard,
    parents: Sequence[_Plan],
    parent_checkpoints: Sequence[Checkpoint | None],
    checkpoints: Mapping[str, Checkpoint],
    initial: Checkpoint,
) -> _Plan:
    if shard.id in checkpoints:
        return _Plan(descends=True, create={})
    descends = any(parent.descends for parent in parents)
    if not parents:
        return _Plan(descends, {shard.id: initial})
    create = {key: first for parent in parents for key, first in parent.create.items()}
    if not create and all(checkpoint == SHARD_END for checkpoint in parent_checkpoints):
        create = {shard.id: TRIM_HORIZON}
    return _Plan(descends, create)
