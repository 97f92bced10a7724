"""Sessions with a target that is MariaDB: servers that are away, names, and tables that are there and have rows."""

from __future__ import annotations

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.replicate.mariadb_target_session import (
    mariadb_has_table,
    mariadb_session,
    mariadb_tables_with_rows,
    sql_name,
)
from kainite.targets.mariadb.rows import rows_of
from support.mariadb_server import run_script


def test_tables_are_there_and_have_rows_or_not(mariadb: str) -> None:
    run_script(mariadb, "CREATE TABLE full (id int); INSERT INTO full VALUES (1); CREATE TABLE bare (id int)")
    with mariadb_session(mariadb) as connection:
        schema = rows_of(connection, "SELECT DATABASE()")[0][0]
        tables = [(schema, name) for name in ("full", "bare", "none")]
        assert [mariadb_has_table(connection, table) for table in tables] == [True, True, False]
        assert mariadb_tables_with_rows(connection, tables) == [(schema, "full")]


def test_a_server_that_is_away_is_told_in_one_line() -> None:
    with pytest.raises(TargetUnavailableError, match="the target: cannot connect to 127"):
        mariadb_session("mariadb://u@127.0.0.1:1/d").__enter__()


def test_names_are_quoted() -> None:
    assert sql_name("a`b", "c") == "`a``b`.`c`"
