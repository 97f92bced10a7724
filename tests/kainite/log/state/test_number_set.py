"""Numbers as ranges: what a set answers, in the memory of the gaps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.log.state import number_set
from kainite.log.state.number_set import NumberSet


@given(st.lists(st.integers(-9, 40)))
def test_it_holds_what_was_added_in_as_few_ranges_as_there_are(added: list[int]) -> None:
    numbers = NumberSet()
    for number in added:
        numbers.add(number)
    assert [number for number in range(-20, 60) if number in numbers] == sorted(set(added))
    assert len(numbers.ranges()) == len([number for number in set(added) if number - 1 not in added])
    again = NumberSet(numbers.ranges())
    assert again.ranges() == numbers.ranges()


def test_dense_numbers_are_one_range() -> None:
    numbers = NumberSet()
    for number in range(1, 10_000):
        numbers.add(number)
    assert numbers.ranges() == [(1, 9_999)]


def test_with_too_many_gaps_the_lowest_are_not_known_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(number_set, "MAX_RANGES", 3)
    numbers = NumberSet()
    for number in (10, 20, 30, 40, 50):
        assert not numbers.may_have(5)
        numbers.add(number)
        if number == 40:
            assert (numbers.ranges()[0], numbers.since) == ((20, 20), 11)
            assert [numbers.may_have(n) for n in (9, 10, 11, 20, 21)] == [True, True, False, True, False]
            break


def test_a_straggler_far_below_does_not_make_forgotten_numbers_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(number_set, "MAX_RANGES", 3)
    numbers = NumberSet()
    for number in (10, 20, 30, 40, 50, 7):
        numbers.add(number)
    assert numbers.since == 21
    assert numbers.may_have(20)
