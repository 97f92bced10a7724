from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.kinesis.shards import MAX_HASH_KEY, HashRange, Shard, children_of, covers_all_keys, parents_first, roots
from kainite.leases.lineage import may_start, missing_leases

# HierarchicalShardSyncer's own example (reference/kcl_multilang.md §7, case 43):
#   0 1 2 3 4 5
#    \|  \| | |
#     6   7 4 5
#      \ /  | |\
#       8   4 9 10
TREE = (
    Shard("0", open=False),
    Shard("1", open=False),
    Shard("2", open=False),
    Shard("3", open=False),
    Shard("4"),
    Shard("5", open=False),
    Shard("6", ("0", "1"), open=False),
    Shard("7", ("2", "3"), open=False),
    Shard("8", ("6", "7")),
    Shard("9", ("5",)),
    Shard("10", ("5",)),
)
SOME = {"4": Checkpoint("17"), "5": Checkpoint("18"), "7": Checkpoint("19")}


@pytest.mark.parametrize(
    ("initial", "created"),
    [
        (LATEST, {"6": LATEST}),
        (TRIM_HORIZON, {"0": TRIM_HORIZON, "1": TRIM_HORIZON}),
        (AT_TIMESTAMP, {"0": AT_TIMESTAMP, "1": AT_TIMESTAMP}),
    ],
)
def test_kcl_example_tree_gets_the_leases_beside_the_lines_in_progress(
    initial: Checkpoint, created: dict[str, Checkpoint]
) -> None:
    assert missing_leases(TREE, SOME, initial) == created


def test_empty_table_gets_open_shards_at_latest_and_the_oldest_at_trim_horizon() -> None:
    assert missing_leases(TREE, {}, LATEST) == {"4": LATEST, "8": LATEST, "9": LATEST, "10": LATEST}
    assert missing_leases(TREE, {}, TRIM_HORIZON) == dict.fromkeys("012345", TRIM_HORIZON)


def test_nothing_is_created_below_a_parent_that_is_still_read() -> None:
    shards = (Shard("0", open=False), Shard("1", ("0",)), Shard("2", ("0",)))
    assert missing_leases(shards, {"0": Checkpoint("5")}, LATEST) == {}


def test_a_lost_lease_below_a_finished_parent_is_mended_from_trim_horizon() -> None:
    shards = (Shard("0", open=False), Shard("1", ("0",)), Shard("2", ("0",)))
    assert missing_leases(shards, {"0": SHARD_END, "1": Checkpoint("7")}, LATEST) == {"2": TRIM_HORIZON}


def test_a_merge_waits_for_its_second_parent() -> None:
    shards = (Shard("0", open=False), Shard("1", open=False), Shard("2", ("0", "1")))
    assert missing_leases(shards, {"0": SHARD_END, "1": Checkpoint("7")}, TRIM_HORIZON) == {}
    assert not may_start(("0", "1"), {"0": SHARD_END, "1": Checkpoint("7")})
    assert may_start(("0", "1"), {"0": SHARD_END, "1": SHARD_END})
    assert may_start(("0", "1"), {})


@st.composite
def lineages(draw: st.DrawFn) -> tuple[Shard, ...]:
    """Any history of splits and merges, without the shards of a time that retention has passed."""
    open_ids = [str(n) for n in range(draw(st.integers(1, 4)))]
    shards = {name: Shard(name) for name in open_ids}
    for _ in range(draw(st.integers(0, 12))):
        parents = tuple(draw(st.sampled_from(open_ids)) for _ in range(draw(st.integers(1, 2))))
        parents = tuple(dict.fromkeys(parents))
        children = [str(len(shards) + n) for n in range(2 if len(parents) == 1 else 1)]
        for parent in parents:
            shards[parent] = Shard(parent, shards[parent].parents, open=False)
            open_ids.remove(parent)
        shards |= {child: Shard(child, parents) for child in children}
        open_ids += children
    trimmed = draw(st.integers(0, 3))
    return tuple(shard for number, shard in enumerate(shards.values()) if shard.open or number >= trimmed)


@given(lineages(), st.sampled_from([LATEST, TRIM_HORIZON, AT_TIMESTAMP]), st.data())
def test_working_through_any_lineage_reads_each_needed_shard_once_and_after_its_parents(
    shards: tuple[Shard, ...], initial: Checkpoint, data: st.DataObject
) -> None:
    by_id = {shard.id: shard for shard in shards}
    leases: dict[str, Checkpoint] = {}
    done: list[str] = []
    for _ in range(3 * len(shards) + 3):
        created = missing_leases(shards, leases, initial)
        assert created.keys().isdisjoint(leases)
        leases |= created
        ready = [
            key
            for key, at in leases.items()
            if at != SHARD_END and not by_id[key].open and may_start(by_id[key].parents, leases)
        ]
        if not ready:
            break
        ended = data.draw(st.sampled_from(ready))
        assert ended not in done
        for child in children_of(ended, shards):
            leases.setdefault(child.id, TRIM_HORIZON)
        leases[ended] = SHARD_END
        done.append(ended)
    open_ids = {shard.id for shard in shards if shard.open}
    assert {key for key, at in leases.items() if at != SHARD_END} == open_ids
    assert len(done) == len(set(done))
    assert initial == LATEST or set(done) == by_id.keys() - open_ids


@given(lineages())
def test_parents_come_first_and_roots_have_none(shards: tuple[Shard, ...]) -> None:
    ordered = [shard.id for shard in parents_first(reversed(shards))]
    assert sorted(ordered) == sorted(shard.id for shard in shards)
    for shard in shards:
        assert all(ordered.index(parent) < ordered.index(shard.id) for parent in shard.parents if parent in ordered)
    assert {shard.id for shard in roots(shards)} == {s.id for s in shards if not set(s.parents) & set(ordered)}


def test_a_lineage_deeper_than_the_interpreters_stack() -> None:
    chain = (Shard("0", open=False), *(Shard(str(n), (str(n - 1),), open=n == 3000) for n in range(1, 3001)))
    assert missing_leases(chain, {}, TRIM_HORIZON) == {"0": TRIM_HORIZON}


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
