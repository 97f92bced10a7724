"""The leases that a table lacks, and the shards that may be read: HierarchicalShardSyncer's cases, and any lineage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.kinesis.shards import Shard, children_of
from kainite.leases.lineage import may_start, missing_leases, missing_lines
from support.lineages import lineages

# HierarchicalShardSyncer's own example (docs/kcl.md, *Shard sync*):
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


def test_a_lost_lease_below_a_finished_parent_is_repaired_from_trim_horizon() -> None:
    shards = (Shard("0", open=False), Shard("1", ("0",)), Shard("2", ("0",)))
    assert missing_leases(shards, {"0": SHARD_END, "1": Checkpoint("7")}, LATEST) == {"2": TRIM_HORIZON}


def test_a_merge_waits_for_its_second_parent() -> None:
    shards = (Shard("0", open=False), Shard("1", open=False), Shard("2", ("0", "1")))
    assert missing_leases(shards, {"0": SHARD_END, "1": Checkpoint("7")}, TRIM_HORIZON) == {}
    assert not may_start(("0", "1"), {"0": SHARD_END, "1": Checkpoint("7")})
    assert may_start(("0", "1"), {"0": SHARD_END, "1": SHARD_END})
    assert may_start(("0", "1"), {})


def ancestors(shard_id: str, by_id: dict[str, Shard]) -> set[str]:
    parents = {parent for parent in by_id[shard_id].parents if parent in by_id}
    return parents.union(*(ancestors(parent, by_id) for parent in parents))


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
        assert initial == LATEST or ancestors(ended, by_id) <= set(done)
        children = [child for child in children_of(ended, shards) if child.id not in leases]
        if lacking := {parent for child in children for parent in child.parents} - leases.keys():
            leases |= missing_leases(shards, leases, initial)
            leases |= missing_lines(shards, leases, lacking)
        for child in children:
            leases.setdefault(child.id, TRIM_HORIZON)
        leases[ended] = SHARD_END
        done.append(ended)
    open_ids = {shard.id for shard in shards if shard.open}
    assert {key for key, at in leases.items() if at != SHARD_END} == open_ids
    assert len(done) == len(set(done))
    assert initial == LATEST or set(done) == by_id.keys() - open_ids


def test_a_lineage_deeper_than_the_interpreters_stack() -> None:
    chain = (Shard("0", open=False), *(Shard(str(n), (str(n - 1),), open=n == 3000) for n in range(1, 3001)))
    assert missing_leases(chain, {}, TRIM_HORIZON) == {"0": TRIM_HORIZON}
