"""Tests how long the apply job waits for more units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite_spark.driver.pace import FULL, pause_after


@pytest.mark.parametrize(
    ("units", "seconds", "pause"), [(0, 0.0, 0.5), (5, 0.1, 0.275), (FULL, 0.0, 0.0), (2_000, 0.0, 0.0), (1, 9.0, 0.0)]
)
def test_small_micro_batches_begin_at_intervals(units: int, seconds: float, pause: float) -> None:
    assert pause_after(units, seconds, 0.5) == pytest.approx(pause)


@given(st.floats(0.1, 1_000.0), st.floats(0.0, 2.0))
def test_at_any_steady_rate_the_interval_settles_within_the_longest(rate: float, longest: float) -> None:
    interval = longest
    for _ in range(200):  # units that come in one interval are the next micro-batch
        interval = (interval + pause_after(int(rate * interval), 0.0, longest)) / 2
    assert 0.0 <= interval <= longest
