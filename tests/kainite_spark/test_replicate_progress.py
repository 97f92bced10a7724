"""Progress is told now and then, as a line or as JSON."""

from __future__ import annotations

import json

import pytest

from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.status import ReplicaStatus
from kainite_spark import replicate_progress
from kainite_spark.replicate_progress import LoadProgress, tell


def test_it_is_told_when_it_is_time(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[ReplicaStatus] = []
    ends = ReplicaEnds(SourceSlot("", "", ""), postgres, "log/0")
    LoadProgress(ends, told.append).look()
    assert told == []
    monkeypatch.setattr(replicate_progress, "TELL_S", 0.0)
    LoadProgress(ends, told.append).look()
    assert [status.state for status in told] == [None]


def test_it_is_a_line_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    status = ReplicaStatus(None, consistent=False)
    tell(status, as_json=False)
    tell(status, as_json=True)
    line, told = capsys.readouterr().out.splitlines()
    assert line == "not loaded"
    assert json.loads(told)["consistent"] is False
