"""The collector runs rarely once that is asked for, and keeps a setting that is rarer."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from kainite.base.garbage import RARELY, collect_rarely


@pytest.fixture(autouse=True)
def _thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_the_collector_runs_rarely() -> None:
    gc.set_threshold(700, 10, 10)
    collect_rarely()
    assert gc.get_threshold() == RARELY


def test_a_setting_that_is_rarer_stays() -> None:
    gc.set_threshold(100_000, 10, 10)
    collect_rarely()
    assert gc.get_threshold() == (100_000, 10, 10)
