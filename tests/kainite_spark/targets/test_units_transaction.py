"""The transaction of a task's session, whatever its database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from kainite.base.errors import TargetRejectedError, TargetUnavailableError
from kainite_spark.targets.units_transaction import units_transaction

DDL = """
    CREATE TABLE parent (id integer PRIMARY KEY);
    CREATE TABLE child (parent integer REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
    PRAGMA foreign_keys = ON;
"""


@pytest.fixture
def connection(tmp_path: Path) -> sqlite3.Connection:
    opened = sqlite3.connect(tmp_path / "db")
    opened.executescript(DDL)
    return opened


def run(connection: sqlite3.Connection, *statements: str) -> None:
    with units_transaction(
        connection,
        connection.close,
        sqlite3.Error,
        lambda error: TargetUnavailableError(str(error)),
        lambda error: TargetRejectedError(str(error)),
    ) as entered:
        for statement in statements:
            entered.execute(statement)


def count(connection: sqlite3.Connection, table: str) -> int:
    (found,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert isinstance(found, int)
    return found


def test_a_transaction_commits_what_it_executed(connection: sqlite3.Connection) -> None:
    run(connection, "INSERT INTO parent VALUES (1)")
    connection.rollback()
    assert count(connection, "parent") == 1


def test_errors_inside_and_at_the_commit_are_told_apart_and_both_roll_back(
    connection: sqlite3.Connection,
) -> None:
    with pytest.raises(TargetUnavailableError):
        run(connection, "INSERT INTO parent VALUES (1)", "INSERT INTO nowhere VALUES (1)")
    with pytest.raises(TargetRejectedError):
        run(connection, "INSERT INTO parent VALUES (1)", "INSERT INTO child VALUES (7)")
    assert (count(connection, "parent"), count(connection, "child")) == (0, 0)


def test_a_connection_that_cannot_roll_back_is_closed(connection: sqlite3.Connection) -> None:
    class Lost(sqlite3.Connection):
        def rollback(self) -> None:
            raise sqlite3.OperationalError("gone")

    lost = sqlite3.connect(":memory:", factory=Lost)
    with pytest.raises(TargetUnavailableError):
        run(lost, "INSERT INTO nowhere VALUES (1)")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        lost.execute("SELECT 1")
