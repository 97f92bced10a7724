"""What only the apply job needs: triggers that fire or are switched off, Java."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kainite.doctor.finding import FindingState
from kainite.settings import Settings, load
from kainite_spark.doctor import look_at_spark, look_at_target


def settings(folder: Path, more: str = "") -> Settings:
    path = folder / "app.properties"
    path.write_text(f"applicationName=app\nregionName=us-east-1\ntarget=sqlite:///{folder}/t.db\n{more}\n")
    return load(path, needs=())


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ("", FindingState.WRONG),
        ("targetTriggerTables=items", FindingState.WARNING),
        ("targetTriggers=fire", FindingState.WARNING),
    ],
)
def test_a_trigger(tmp_path: Path, more: str, state: FindingState) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db")) as target:
        target.executescript(
            "CREATE TABLE items (id integer PRIMARY KEY);"
            "CREATE TRIGGER t AFTER INSERT ON items BEGIN DELETE FROM items WHERE id < 0; END;"
        )
    [finding] = look_at_target(settings(tmp_path, more))
    assert finding.state is state
    assert "items" in finding.what


def test_java_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [found] = look_at_spark(settings(tmp_path))
    assert found.state is FindingState.WELL
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    [found] = look_at_spark(settings(tmp_path))
    assert found.state is FindingState.WRONG
    assert "JAVA_HOME" in found.remedy
