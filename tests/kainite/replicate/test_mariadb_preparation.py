"""Tables that are made in MariaDB; the rest is in ``tests/kainite_spark/test_replicate_into_mariadb.py``."""

from __future__ import annotations

import pytest

from kainite.base.errors import CatalogueError
from kainite.replicate.mariadb_preparation import make_tables, sql_names
from kainite.replicate.mariadb_target_session import mariadb_session
from kainite.targets.mariadb.rows import rows_of


def test_tables_are_made_in_any_order_and_a_refusal_says_which_and_why(mariadb: str) -> None:
    statements = {
        "line": "CREATE TABLE line (id int PRIMARY KEY, item int, FOREIGN KEY (item) REFERENCES item (id))",
        "item": "CREATE TABLE item (id int PRIMARY KEY)",
        "wide": "CREATE TABLE wide (id varchar(1000) CHARACTER SET utf8mb4 PRIMARY KEY)",
    }
    with mariadb_session(mariadb) as connection:
        made = make_tables(connection, statements)
        assert [next(made), next(made)] == ["made table line", "made table item"]
        with pytest.raises(CatalogueError, match="the target refused wide: Specified key was too long"):
            next(made)
        assert {name for (name,) in rows_of(connection, "SHOW TABLES")} == {"line", "item"}


def test_names_are_quoted() -> None:
    assert sql_names(["a", "b`c"]) == "`a`, `b``c`"
