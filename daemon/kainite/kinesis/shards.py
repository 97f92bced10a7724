"""Shards and their lineage, and which of them need a lease. Pure functions.

A split gives a shard two children, a merge gives two shards one child. A child's records follow
all records of its parents, so a child is read only when its parents are done. Which leases to
create follows KCL's ``HierarchicalShardSyncer`` (docs/kcl.md, *Shard sync*).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from typing import Any

from kainite.base.shard_key import ShardKey

MAX_HASH_KEY = 2**128 - 1


@dataclass(frozen=True, slots=True)
class HashRange:
    """Hash keys of a shard, both ends included."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard as ListShards, or GetRecords at its parent's end, describes it.

    Attributes:
        id: the shard's id; its key, once it is named for an application of several streams (:meth:`within`).
        parents: the shards it was made from: none, one (split) or two (merge).
        hash_range: the shard's range of hash keys, where known.
        open: whether the shard still takes records.
    """

    id: str
    parents: tuple[str, ...] = ()
    hash_range: HashRange | None = None
    open: bool = True

    @classmethod
    def from_listing(cls, item: Mapping[str, Any]) -> Shard:
        """Makes a shard of an item of ListShards."""
        parents = (item.get("ParentShardId"), item.get("AdjacentParentShardId"))
        ended = "EndingSequenceNumber" in item.get("SequenceNumberRange", {})
        return cls(item["ShardId"], tuple(p for p in parents if p), _hash_range(item), open=not ended)

    @classmethod
    def from_end_of_parent(cls, item: Mapping[str, Any]) -> Shard:
        """Makes a shard of an item of ``ChildShards`` in a GetRecords reply."""
        return cls(item["ShardId"], tuple(item.get("ParentShards") or ()), _hash_range(item))

    def within(self, stream: str) -> Shard:
        """Returns the shard with keys in place of ids, its own and its parents'; ``stream`` is the stream's part."""
        if not stream:
            return self
        parents = tuple(str(ShardKey(stream, parent)) for parent in self.parents)
        return replace(self, id=str(ShardKey(stream, self.id)), parents=parents)


def _hash_range(item: Mapping[str, Any]) -> HashRange | None:
    keys = item.get("HashKeyRange")
    return HashRange(int(keys["StartingHashKey"]), int(keys["EndingHashKey"])) if keys else None


def children_of(shard_id: str, shards: Iterable[Shard]) -> tuple[Shard, ...]:
    return tuple(shard for shard in shards if shard_id in shard.parents)


def roots(shards: Sequence[Shard]) -> tuple[Shard, ...]:
    """Returns the shards that have no parent among ``shards``."""
    ids = {shard.id for shard in shards}
    return tuple(shard for shard in shards if ids.isdisjoint(shard.parents))


def parents_first(shards: Iterable[Shard]) -> tuple[Shard, ...]:
    """Returns the shards, each after its parents, always in the same order."""
    by_id = {shard.id: shard for shard in sorted(shards, key=lambda shard: shard.id)}
    order = TopologicalSorter({shard.id: known_parents(shard, by_id) for shard in by_id.values()})
    return tuple(by_id[shard_id] for shard_id in order.static_order())


def first_hole(ranges: Iterable[HashRange]) -> HashRange | None:
    """Returns the first hash keys that no range holds; None when there are none. Overlaps are fine."""
    reached = -1
    for keys in sorted(ranges, key=lambda keys: keys.start):
        if keys.start > reached + 1:
            return HashRange(reached + 1, keys.start - 1)
        reached = max(reached, keys.end)
    return None if reached >= MAX_HASH_KEY else HashRange(reached + 1, MAX_HASH_KEY)


def covers_all_keys(shards: Iterable[Shard]) -> bool:
    """Tells whether the shards' hash ranges leave no hole; overlaps are fine."""
    return first_hole(shard.hash_range for shard in shards if shard.hash_range) is None


def unexpected_children(shards: Iterable[Shard]) -> frozenset[str]:
    """Returns the shards with a parent that is still open: the listing was made in the middle of a split or a merge."""
    shards = tuple(shards)
    still_open = {shard.id for shard in shards if shard.open}
    return frozenset(shard.id for shard in shards if not still_open.isdisjoint(shard.parents))


def known_parents(shard: Shard, by_id: Mapping[str, Shard]) -> list[str]:
    return [parent for parent in shard.parents if parent in by_id]
