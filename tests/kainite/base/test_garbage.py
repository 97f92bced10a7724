"""The collector runs rarely once that is asked for, and passes by what is to be kept."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from kainite.base.garbage import RARELY, collect_rarely, keep_what_is_loaded


@pytest.fixture(autouse=True)
def _thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def test_the_collector_runs_rarely() -> None:
    gc.set_threshold(700, 10, 10)
    collect_rarely()
    assert gc.get_threshold() == RARELY


def test_a_setting_that_is_rarer_stays() -> None:
    gc.set_threshold(100_000, 10, 10)
    collect_rarely()
    assert gc.get_threshold() == (100_000, 10, 10)


def test_what_is_loaded_is_not_looked_at_any_more() -> None:
    keep_what_is_loaded()
    first = gc.get_freeze_count()
    assert first > 0
    keep_what_is_loaded()
    assert abs(gc.get_freeze_count() - first) < first / 10
