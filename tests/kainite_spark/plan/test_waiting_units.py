"""The units that wait for their turn: their order, what shares a micro-batch, and the stop."""

from __future__ import annotations

from kainite.log.state.unit_state import UnitState
from kainite.uow.scheme import Comparisons
from kainite_spark.plan.passing import Passing
from kainite_spark.plan.waiting_units import WaitingUnits
from support.unit_states import unit_state


def waiting(*units: UnitState, held: frozenset[int] = frozenset()) -> WaitingUnits:
    """Returns units that wait in their places; those in ``held`` may not run."""
    known, schemes = {unit.tid: unit for unit in units}, Comparisons()
    found = WaitingUnits(known, schemes, Passing(known, schemes), lambda unit: unit.tid not in held)
    for unit in units:
        found.append(unit.tid)
    return found


def tids(units: list[UnitState]) -> list[int]:
    return [unit.tid for unit in units]


def test_units_are_taken_in_log_order_as_many_as_fit() -> None:
    units = waiting(unit_state(1, count=2), unit_state(2, count=2), unit_state(3, count=2))

    assert tids(units.take(10, 4)) == [1, 2]
    assert tids(units.take(10, 1)) == [3]
    assert len(units) == 0


def test_a_unit_that_is_held_back_is_taken_out_and_not_chosen() -> None:
    units = waiting(unit_state(1), unit_state(2), held=frozenset({1}))

    assert tids(units.take(10, 10)) == [2]
    assert list(units) == []


def test_units_of_two_schemes_share_no_choice() -> None:
    units = waiting(unit_state(1, scheme="a"), unit_state(2, scheme="b"))

    assert tids(units.take(10, 10)) == [1]


def test_a_unit_that_is_put_back_has_its_place_in_the_log() -> None:
    units = waiting(unit_state(1), unit_state(2), unit_state(3))
    units.take(2, 10)
    units.put([2, 1])

    assert units.oldest == 1
    assert tids(units.take(10, 10)) == [1, 2, 3]


def test_what_is_tried_again_waits_behind_an_earlier_unit_that_it_conflicts_with() -> None:
    units = waiting(unit_state(1, {7}), unit_state(2, {7}), unit_state(3, {8}))
    units.take(10, 10)
    units.put([1])
    units.put_again([3, 2])

    assert tids(units.take_again()) == [3]
    assert list(units) == [1, 2]


def test_nothing_is_taken_from_the_stop_on() -> None:
    units = waiting(unit_state(1), unit_state(2))
    units.stop_before(lambda unit: unit.tid >= 2)

    assert units.first_behind_stop is None
    assert tids(units.take(10, 10)) == [1]
    assert units.take(10, 10) == []
    assert units.first_behind_stop == 2


def test_units_that_are_removed_wait_no_more() -> None:
    units = waiting(unit_state(1), unit_state(2))
    units.put_again([5])
    units.remove({1, 5})

    assert list(units) == [2]
