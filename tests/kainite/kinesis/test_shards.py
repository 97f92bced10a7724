from __future__ import annotations

import pytest
from hypothesis import given

from kainite.kinesis.shards import MAX_HASH_KEY, HashRange, Shard, covers_all_keys, parents_first, roots
from support.lineages import lineages


@given(lineages())
def test_parents_come_first_and_roots_have_none(shards: tuple[Shard, ...]) -> None:
    ordered = [shard.id for shard in parents_first(reversed(shards))]
    assert sorted(ordered) == sorted(shard.id for shard in shards)
    for shard in shards:
        assert all(ordered.index(parent) < ordered.index(shard.id) for parent in shard.parents if parent in ordered)
    assert {shard.id for shard in roots(shards)} == {s.id for s in shards if not set(s.parents) & set(ordered)}


@pytest.mark.parametrize(
    ("ranges", "covered"),
    [
        ([(0, MAX_HASH_KEY)], True),
        ([(10, MAX_HASH_KEY), (0, 9)], True),
        ([(0, 20), (10, MAX_HASH_KEY)], True),
        ([(0, 9), (11, MAX_HASH_KEY)], False),
        ([(0, MAX_HASH_KEY - 1)], False),
        ([(1, MAX_HASH_KEY)], False),
        ([], False),
    ],
)
def test_holes_in_the_hash_keys(ranges: list[tuple[int, int]], covered: bool) -> None:
    assert covers_all_keys([Shard(str(start), hash_range=HashRange(start, end)) for start, end in ranges]) is covered


def test_shards_as_kinesis_describes_them() -> None:
    listed = {
        "ShardId": "c",
        "ParentShardId": "a",
        "AdjacentParentShardId": "b",
        "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "9"},
        "SequenceNumberRange": {"StartingSequenceNumber": "1", "EndingSequenceNumber": "2"},
    }
    assert Shard.from_listing(listed) == Shard("c", ("a", "b"), HashRange(0, 9), open=False)
    child = {"ShardId": "c", "ParentShards": ["a", "b"], "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "9"}}
    assert Shard.from_end_of_parent(child) == Shard("c", ("a", "b"), HashRange(0, 9))
