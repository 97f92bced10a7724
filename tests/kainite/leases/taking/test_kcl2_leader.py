"""The leader is the one that Java computes: vectors from KCL 2.5.8's own jars (docs/kcl.md, *Shard sync*)."""

from __future__ import annotations

import pytest

from kainite.leases.taking.kcl2_leader import SEED, JavaRandom, elect_leader, shuffle


@pytest.mark.parametrize("order", [[0], [0, 1], [2, 0, 1], [3, 0, 1, 2], [4, 0, 2, 1, 3], [2, 3, 5, 4, 0, 1]], ids=len)
def test_the_shuffle_is_javas(order: list[int]) -> None:
    items = list(range(len(order)))
    shuffle(items, JavaRandom(SEED))
    assert items == order


def test_numbers_are_javas() -> None:
    random = JavaRandom(42)
    # new Random(42): nextInt(10), ten times.
    assert [random.next_int(10) for _ in range(10)] == [0, 3, 8, 4, 0, 5, 5, 8, 9, 3]


def test_the_leader_is_the_same_whoever_asks_and_in_whatever_order() -> None:
    assert elect_leader(["c", "a", "b", "a"]) == elect_leader(["b", "c", "a"]) == "c"
    assert elect_leader([]) is None
