"""Calls to Kinesis without the pauses between them."""

from __future__ import annotations

import pytest

from kainite.base.retry import Backoff
from kainite.leases.administration import shard_reading


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_reading, "PAUSE_S", 0.0)
    monkeypatch.setattr(shard_reading, "AWS_BACKOFF", Backoff((0.0,)))
