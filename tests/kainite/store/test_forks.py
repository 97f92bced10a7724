"""A store knows where a partition's items stand: in the spine before the fork, in its stripes behind it."""

from __future__ import annotations

from kainite.log.contract import Fork, Slot
from kainite.store.dynamodb_items import id_key
from kainite.store.forks import KnownForks

FORK = Slot(10, 3, 0, "fork", Fork(at=10, stripes=4, block=5))
BATCH = Slot(9, 2, 1, "batch")


def known() -> KnownForks:
    forks = KnownForks()
    forks.learn("0", FORK)
    return forks


def test_a_fork_is_known_from_its_slot_on_and_for_its_partition_alone() -> None:
    forks = KnownForks()
    assert forks.learn("0", None) is None
    assert forks.learn("0", BATCH) is None
    assert forks.of("0") is None
    assert forks.learn("0", FORK) == FORK.fork
    assert forks.learn("0", BATCH) is None, "only the last slot of the spine says that there is none"
    assert forks.of("0") == FORK.fork
    assert forks.of("1") is None


def test_a_table_that_was_made_anew_has_no_fork() -> None:
    for last in (None, BATCH):
        forks = known()
        forks.learn_last("0", last)
        assert forks.of("0") is None
    forks = known()
    forks.learn_last("0", FORK)
    assert forks.of("0") == FORK.fork


def test_a_writer_that_has_mounted_before_the_fork_finds_it_in_its_way() -> None:
    forks = known()
    assert forks.in_way("0", 10, 2) == FORK
    assert forks.in_way("0", 9, 2) is None
    assert forks.in_way("0", 10, 3) is None
    assert KnownForks().in_way("0", 10, 2) is None


def test_slots_stand_in_the_spine_before_the_fork_and_block_by_block_in_stripes_behind_it() -> None:
    forks = known()
    assert [forks.slot_key("0", first_id)["p"] for first_id in (9, 10, 14, 15, 29, 30)] == [
        {"S": name} for name in ("0#L", "0#L#2", "0#L#2", "0#L#3", "0#L#1", "0#L#2")
    ]
    assert forks.slot_key("0", 15)["s"] == {"S": id_key(15)}
    assert KnownForks().slot_key("0", 15)["p"] == {"S": "0#L"}


def test_chunks_of_one_batch_go_on_through_the_stripes() -> None:
    forks = known()
    places = [forks.chunk_key("0", 15, "n", number) for number in range(5)]
    assert [place["p"]["S"] for place in places] == ["0#C#3", "0#C#0", "0#C#1", "0#C#2", "0#C#3"]
    assert len({place["s"]["S"] for place in places}) == 5
    assert {forks.chunk_key("0", 9, "n", number)["p"]["S"] for number in range(5)} == {"0#C"}
