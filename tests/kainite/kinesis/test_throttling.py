"""Throttled calls of many shards are told in one line."""

from __future__ import annotations

import logging

import pytest

from kainite.kinesis.throttling import Throttling


def test_the_throttled_calls_of_all_shards_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    throttling = Throttling("orders")
    for shard in range(100):
        throttling.happened(f"s-{shard}", RuntimeError("slow down"))
    (told,) = caplog.records
    assert (told.levelno, told.getMessage()) == (logging.WARNING, "reading is throttled")
    fields = told.__dict__["kainite_fields"]
    assert (fields["stream"], fields["calls"], fields["latest"]) == ("orders", 1, "s-0")
