"""Refusals: each is counted, few are logged, and a line says how many were not."""

from __future__ import annotations

import logging

import pytest

from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.peers.refusals import BURST, EVERY_S, Refusals
from support.metric_sums import Sums


def test_a_flood_is_counted_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    sums, now = Sums(), [0.0]
    refusals = Refusals(Meter(sums), lambda: now[0])
    for _ in range(1_000):
        refusals.tell("127.0.0.1:7", "", "no proof")
    assert len(caplog.records) == BURST
    assert sums.values[metric.LOG_REFUSED] == 1_000
    now[0] = EVERY_S
    caplog.set_level(logging.WARNING)
    refusals.tell("127.0.0.1:8", "ann", "no right")
    (line,) = caplog.records[BURST:]
    assert line.kainite_fields == {  # type: ignore[attr-defined]
        "peer": "127.0.0.1:8", "user": "ann", "cause": "no right", "others": 990,
    }  # fmt: skip
