"""Tests how long the apply job waits for more units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite_spark.driver.pace import FULL, Pace


def steady(rate: float, took: float, longest: float = 0.5, seconds: float = 10.0) -> list[float]:
    """Returns the intervals between micro-batches that take so long, while units come at a steady rate."""
    pace, now, intervals = Pace(longest), 100.0, []
    before = now - 1 / rate
    while now < 100.0 + seconds:
        pace.begun(round(rate * (now - before)), now)
        before, now = now, max(now + took + pace.pause(now + took), now + 1 / rate)
        intervals.append(now - before)
    return intervals


def test_a_unit_after_a_rest_does_not_wait_and_those_behind_it_do() -> None:
    pace = Pace(0.5)
    assert pace.pause(7.0) == 0.0
    pace.begun(1, 1_000.0)
    assert pace.pause(1_000.1) == pytest.approx(0.4)
    assert pace.pause(1_000.7) == 0.0


def test_few_units_are_gathered() -> None:
    assert steady(10.0, 0.1)[-1] == pytest.approx(0.375, abs=0.03)


@pytest.mark.parametrize("took", [0.03, 0.1, 0.3])
def test_units_that_come_steadily_never_wait_for_more(took: float) -> None:
    # A pause by the units of the micro-batch before held up every second one of quick micro-batches.
    assert max(steady(100.0, took)[5:]) == pytest.approx(took, abs=0.02)


def test_without_an_interval_nothing_waits() -> None:
    assert max(steady(1.0, 0.01, longest=0.0)) == pytest.approx(1.0)


@given(st.floats(0.1, 1_000.0), st.floats(0.01, 1.0), st.floats(0.0, 2.0))
def test_no_interval_is_longer_than_the_longest(rate: float, took: float, longest: float) -> None:
    assert max(steady(rate, took, longest, 2.0)) <= max(longest, took, 1 / rate) + 1e-6


def test_the_rate_from_which_nothing_waits() -> None:
    assert max(steady(FULL * 1.1, 0.01)[50:]) < 0.05
