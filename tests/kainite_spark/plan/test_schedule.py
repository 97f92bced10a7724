"""The schedule: units that conflict stay together and in order, others are spread over job instances."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from kainite.log.state.unit_state import UnitState
from kainite.uow.conflicts import components, conflict
from kainite_spark.plan.schedule import schedule
from support.unit_states import unit_state


def unit(tid: int, written: set[int], read: set[int] | None = None, count: int = 1) -> UnitState:
    return unit_state(tid, written, read or (), count=count)


@st.composite
def batches(draw: st.DrawFn) -> list[UnitState]:
    signatures = st.sets(st.integers(0, 25), max_size=3)
    return [
        unit(3 * index, draw(signatures), draw(signatures), draw(st.integers(0, 9)))
        for index in range(draw(st.integers(0, 25)))
    ]


@given(batches(), st.integers(1, 5))
def test_conflicting_units_are_on_one_instance_and_nothing_is_lost_or_out_of_order(
    units: list[UnitState], instances: int
) -> None:
    lanes = schedule(units, instances)

    assert len(lanes) == instances
    assert sorted(unit.tid for lane in lanes for unit in lane) == [unit.tid for unit in units]
    assert all([u.tid for u in lane] == sorted(u.tid for u in lane) for lane in lanes)
    for one, other in combinations(lanes, 2):
        assert not any(conflict(a, b) for a in one for b in other)


@given(batches())
def test_a_component_holds_no_unit_that_conflicts_do_not_connect(units: list[UnitState]) -> None:
    for component in components(units):
        reached, before = {component[0].tid}, set[int]()
        while reached != before:
            before = set(reached)
            reached |= {b.tid for a in component if a.tid in before for b in component if conflict(a, b)}
        assert reached == {unit.tid for unit in component}


def test_readers_of_one_row_are_free_of_each_other() -> None:
    units = [unit(tid, {100 + tid}, {7}) for tid in range(4)]

    assert [len(lane) for lane in schedule(units, 2)] == [2, 2]


def test_a_unit_that_writes_what_others_read_is_with_all_of_them() -> None:
    units = [unit(0, {1}, {7}), unit(1, {2}, {7}), unit(2, {7}), unit(3, {3})]

    assert components(units) == [units[:3], units[3:]]


def test_a_unit_that_bridges_two_components_joins_them() -> None:
    first, second, bridge, apart = unit(0, {1}), unit(1, {2}), unit(2, {1, 2}), unit(3, {3})

    assert schedule([first, second, apart], 3) == ((first,), (second,), (apart,))
    assert schedule([first, second, bridge, apart], 2) == ((first, second, bridge), (apart,))


def test_the_longest_component_goes_first_so_that_instances_finish_together() -> None:
    units = [unit(0, {0}, count=2), unit(1, {1}, count=2), unit(2, {2}, count=2), unit(3, {3}, count=6)]

    assert schedule(units, 2) == ((units[3],), tuple(units[:3]))


@given(batches())
def test_the_same_units_give_the_same_schedule(units: list[UnitState]) -> None:
    assert schedule(units, 3) == schedule(list(units), 3)
