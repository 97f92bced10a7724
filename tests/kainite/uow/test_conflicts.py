"""The conflict rule and its indexes, against the plain definition over all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.uow.conflicts import FEW, EarliestConflicts, LatestConflicts, components, conflict


@dataclass(frozen=True, slots=True)
class Access:
    tid: int
    written: frozenset[int]
    read: frozenset[int]


def access(tid: int, written: set[int], read: set[int] | None = None) -> Access:
    return Access(tid, frozenset(written), frozenset(read or ()))


def defined(one: Access, other: Access) -> bool:
    """Returns what the definition says: one writes what the other writes or reads."""
    return any(s in other.written or s in other.read for s in one.written) or any(s in one.read for s in other.written)


signatures = st.sets(st.integers(0, 8), max_size=4)
units = st.lists(st.tuples(signatures, signatures), max_size=20).map(
    lambda pairs: [access(3 * index, written, read) for index, (written, read) in enumerate(pairs)]
)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (access(0, {1}), access(1, {1}), True),
        (access(0, {1}), access(1, set(), {1}), True),
        (access(0, set(), {1}), access(1, {1}), True),
        (access(0, set(), {1}), access(1, set(), {1}), False),
        (access(0, {1}, {3}), access(1, {2}, {3}), False),
        (access(0, set()), access(1, set()), False),
    ],
)
def test_a_conflict_needs_a_writer(one: Access, other: Access, expected: bool) -> None:
    assert conflict(one, other) is expected


@given(units)
def test_the_pairwise_rule_is_the_definition_and_symmetric(units: list[Access]) -> None:
    for one, other in combinations(units, 2):
        assert conflict(one, other) == conflict(other, one) == defined(one, other)


@given(units, st.sampled_from([0, 3, FEW]))
def test_the_latest_conflict_is_the_last_unit_before_that_conflicts(units: list[Access], few: int) -> None:
    index = LatestConflicts(few)
    for place, unit in enumerate(units):
        expected = max((earlier.tid for earlier in units[:place] if defined(earlier, unit)), default=None)
        assert index.find(unit.written, unit.read) == expected
        index.add(unit.tid, unit.written, unit.read)


@given(units)
def test_ranks_that_grow_only_along_conflicts_are_enough_for_the_latest_conflict(units: list[Access]) -> None:
    index = LatestConflicts()
    layers: dict[int, int] = {}
    for place, unit in enumerate(units):
        expected = max((layers[earlier.tid] for earlier in units[:place] if defined(earlier, unit)), default=None)
        found = index.find(unit.written, unit.read)
        assert found == expected
        layers[unit.tid] = 0 if found is None else found + 1
        index.add(layers[unit.tid], unit.written, unit.read)


@given(units, st.data())
def test_a_unit_that_was_removed_is_not_found(units: list[Access], data: st.DataObject) -> None:
    index = LatestConflicts()
    for unit in units:
        index.add(unit.tid, unit.written, unit.read)
    removed = data.draw(st.sets(st.sampled_from(units))) if units else set()
    for unit in removed:
        index.remove(unit.tid, unit.written, unit.read)
    for unit in units:
        assert index.find(unit.written, unit.read) not in {gone.tid for gone in removed}


def test_nothing_is_left_of_units_that_were_all_removed() -> None:
    index = LatestConflicts()
    index.add(0, {1}, {2})
    index.add(1, {1}, {2})
    index.remove(0, {1}, {2})
    assert index.find({1, 2}, set()) == 1
    index.remove(1, {1}, {2})
    assert index.find({1, 2}, {1, 2}) is None


@given(units.flatmap(st.permutations), units)
def test_the_earliest_conflict_is_the_first_unit_before_that_conflicts(held: list[Access], asked: list[Access]) -> None:
    index = EarliestConflicts()
    for unit in held:
        index.add(unit.tid, unit.written, unit.read)
    for unit in asked:
        expected = min((one.tid for one in held if one.tid < unit.tid and defined(one, unit)), default=None)
        assert index.find(unit.tid, unit.written, unit.read) == expected


@given(units)
def test_components_are_what_conflicts_connect(units: list[Access]) -> None:
    found = components(units)

    assert sorted(unit.tid for component in found for unit in component) == [unit.tid for unit in units]
    assert [component[0].tid for component in found] == sorted(component[0].tid for component in found)
    for one, other in combinations(found, 2):
        assert not any(defined(a, b) for a in one for b in other)
    for component in found:
        assert component == sorted(component, key=lambda unit: unit.tid)
        reached, before = {component[0].tid}, set[int]()
        while reached != before:
            before = set(reached)
            reached |= {b.tid for a in component if a.tid in before for b in component if defined(a, b)}
        assert reached == {unit.tid for unit in component}


def test_a_unit_that_writes_what_others_read_is_connected_with_all_of_them() -> None:
    units = [access(0, {1}, {7}), access(1, {2}, {7}), access(2, {7}), access(3, {3})]

    assert components(units) == [units[:3], units[3:]]


def test_conflicts_that_nobody_asks_for_take_no_memory() -> None:
    index = LatestConflicts()
    index.add(0, {1}, {2})
    index.disregard()
    index.add(1, {1}, {2})
    index.widen(1, {3}, set())
    index.remove(0, {1}, {2})
    with pytest.raises(AssertionError, match="disregarded"):
        index.find({1}, set())
