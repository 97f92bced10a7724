"""What only the apply job needs: triggers that fire or are switched off, Java."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kainite.doctor.finding import FindingState
from kainite.settings import Settings, load
from kainite.settings.targets import of_target
from kainite_spark.doctor import look_at_spark, look_at_target, other_logs


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


def test_another_log_of_the_target_is_named(tmp_path: Path) -> None:
    """Shows the log of the file itself is no other one, and of one of several targets neither."""
    mine = settings(tmp_path, "logTableName=log\nlogPartition=eu")
    assert list(other_logs(mine, ["log/eu", "log/eu/shop"])) == []
    [found] = other_logs(mine, ["log/eu", "log/us", "log/eu2/shop"])
    assert found.state is FindingState.WARNING
    assert "log/eu2/shop, log/us;" in found.what
    assert "those of log/eu touch" in found.what
    assert "target.NAME.tables" in found.remedy


def test_a_log_that_keeps_to_its_tables_is_well_beside_others(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    named = f"applicationName=app\nregionName=us-east-1\nlogTableName=log\ntarget.shop=sqlite:///{tmp_path}/t.db\n"
    path.write_text(f"{named}target.shop.tables=sales.*\n")
    [found] = other_logs(of_target(load(path, needs=()), "shop"), ["log/0/shop", "log/1/shop"])
    assert found.state is FindingState.WELL
    assert "log/1/shop; log/0/shop keeps to its tables: sales.*" in found.what
    path.write_text(named)
    [found] = other_logs(of_target(load(path, needs=()), "shop"), ["log/1/shop"])
    assert found.state is FindingState.WARNING
