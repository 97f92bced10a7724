"""The triggers of a SQLite database, and the tables of which a change fires them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from kainite.uow.catalogue.reflection import reflect
from kainite_spark.targets.sqlite.firing_triggers import found_triggers


def test_triggers_and_what_leads_to_them(tmp_path: Path) -> None:
    path = tmp_path / "target.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("""
            CREATE TABLE a (id integer PRIMARY KEY);
            CREATE TABLE b (id integer PRIMARY KEY, a integer REFERENCES a ON DELETE CASCADE);
            CREATE TABLE c (id integer PRIMARY KEY, b integer REFERENCES b ON UPDATE SET NULL);
            CREATE TABLE d (id integer PRIMARY KEY, a integer REFERENCES a, c integer REFERENCES c);
            CREATE TABLE kainite_applied (id integer PRIMARY KEY);
            CREATE TRIGGER t AFTER UPDATE ON C BEGIN SELECT 1; END;
            CREATE TRIGGER own AFTER UPDATE ON kainite_applied BEGIN SELECT 1; END;
        """)
        found = found_triggers(connection, reflect(f"sqlite:///{path}"))
    assert [(hook.table, hook.name) for hook in found.firing] == [("c", "t")]
    assert "AFTER UPDATE ON C" in found.firing[0].definition
    assert found.hooked == {"a", "b", "c"}
