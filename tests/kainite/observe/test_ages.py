"""Tests how long ago a number was reached."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.observe.ages import Ages


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_number_is_as_old_as_the_first_mark_behind_it() -> None:
    clock = Clock()
    seen = Ages(clock)
    seen.reached(10)
    clock.now = 5.0
    seen.reached(20)
    clock.now = 7.0
    assert [seen.of(number) for number in (0, 9, 10, 19, 20)] == [7.0, 7.0, 2.0, 2.0, 0.0]


def test_what_is_forgotten_changes_no_later_number() -> None:
    clock = Clock()
    seen = Ages(clock)
    for number in (10, 20, 30):
        seen.reached(number)
        clock.now += 1.0
    seen.forget(15)
    assert [seen.of(number) for number in (15, 25)] == [2.0, 1.0]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=200), st.integers(2, 16))
def test_many_marks_make_ages_less_exact_and_never_older(steps: list[int], most: int) -> None:
    clock = Clock()
    seen, exact, number = Ages(clock, most), dict[int, float](), 0
    for step in steps:
        exact.update(dict.fromkeys(range(number, number + step), clock.now))
        number += step
        seen.reached(number)
        clock.now += 1.0
    assert all(0.0 < seen.of(each) <= clock.now - at for each, at in exact.items())
