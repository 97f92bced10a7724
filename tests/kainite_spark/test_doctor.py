"""What only the apply job needs: triggers that fire or are switched off, Java."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kainite.doctor.finding import FindingState
from kainite.settings import Settings, load
from kainite.uow.catalogue.several import catalogue_of
from kainite_spark.configured_target import tables_taken
from kainite_spark.doctor import look_at_spark, look_at_target, other_logs
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.opening import open_target
from support.stores import Database


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


def test_a_table_of_another_log_is_wrong_and_other_tables_are_not() -> None:
    """Shows the log of the file itself is no other one."""
    mine = LogTables("log/eu", "log/eu/shop", {"item": "public.item"})
    assert list(other_logs(mine, {"public.item": "log/eu", "public.other": "log/eu"})) == []
    [found] = other_logs(mine, {"public.other": "log/us"})
    assert found.state is FindingState.WELL
    assert "log/us; none of them has a table of log/eu" in found.what
    [found] = other_logs(mine, {"public.item": "log/us"})
    assert found.state is FindingState.WRONG
    assert "table public.item of the target is written by the log log/us" in found.what
    assert "targetSharedTables" in found.remedy


@pytest.mark.parametrize("kind", ["postgres", "mariadb"])
def test_the_doctor_finds_a_table_that_an_apply_job_would_be_refused(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Shows an apply job that begins takes its tables, and the doctor of another log says so beforehand."""
    url = request.getfixturevalue(kind)
    Database(url).run("CREATE TABLE item (id int PRIMARY KEY)")
    path = tmp_path / "app.properties"
    lines = f"applicationName=app\nregionName=us-east-1\nlogTableName=log\ntarget={url}\n"
    path.write_text(lines)
    first = load(path, needs=())
    catalogue = catalogue_of(first)
    assert catalogue is not None
    assert not [found for found in look_at_target(first) if found.state is FindingState.WRONG]
    with closing(open_target(url, catalogue)) as target:
        target.prepare("log/0", catalogue)
        target.take_tables(tables_taken(first, catalogue))
    assert not [found for found in look_at_target(first) if found.state is FindingState.WRONG]
    path.write_text(f"{lines}logPartition=1\n")
    [wrong] = [found for found in look_at_target(load(path, needs=())) if found.state is FindingState.WRONG]
    assert "is written by the log log/0, and log/1 would" in wrong.what
    path.write_text(f"{lines}logPartition=1\ntargetSharedTables=item\n")
    assert not [found for found in look_at_target(load(path, needs=())) if found.state is FindingState.WRONG]
