"""Layers of units by their conflicts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.uow.conflicts import conflict
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.statements.layers import conflict_layers


def unit(tid: int, written: set[int], read: set[int]) -> Unit:
    return Unit(tid, f"T-{tid}", (), frozenset(written), frozenset(read))


signatures = st.sets(st.integers(0, 8), max_size=4)
unit_lists = st.lists(st.tuples(signatures, signatures), max_size=25).map(
    lambda pairs: [unit(tid, written, read) for tid, (written, read) in enumerate(pairs)]
)


def test_readers_of_one_row_share_a_layer_and_its_writer_stands_between() -> None:
    units = [unit(0, set(), {1}), unit(1, set(), {1}), unit(2, {1}, set()), unit(3, set(), {1})]
    assert [[unit.tid for unit in layer] for layer in conflict_layers(units)] == [[0, 1], [2], [3]]


def test_a_unit_comes_after_the_highest_layer_that_it_conflicts_with() -> None:
    units = [unit(0, {1}, set()), unit(1, {1}, set()), unit(2, {2}, set()), unit(3, {1, 2}, set()), unit(4, {2}, set())]
    assert [[unit.tid for unit in layer] for layer in conflict_layers(units)] == [[0, 2], [1], [3], [4]]


@given(units=unit_lists)
def test_every_layer_is_as_early_as_its_conflicts_allow(units: list[Unit]) -> None:
    layers = conflict_layers(units)
    number = {unit.tid: index for index, layer in enumerate(layers) for unit in layer}
    assert sorted(number) == [unit.tid for unit in units]
    assert all(layers)
    for later in units:
        before = [number[earlier.tid] for earlier in units[: later.tid] if conflict(earlier, later)]
        assert number[later.tid] == max(before, default=-1) + 1


def test_who_asks_whether_there_are_so_many_layers_gets_no_more() -> None:
    units = [unit(tid, {1}, set()) for tid in range(5)]
    assert len(conflict_layers(units, 3)) == 3
    assert conflict_layers(units, 6) == conflict_layers(units)
