"""Statements in SQLite's SQL, and the values of a row."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from kainite.uow.catalogue.tables import Column, TypeFamily
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.sqlite.rendering import Value, parameters, quoted, render
from kainite_spark.targets.statements.planner import StatementShape
from support.tables import INTEGER, TEXT, columns, table

BLOB = Column("b", "BLOB", TypeFamily.OPAQUE)
ITEM = table("item", {**columns(id=INTEGER, v=TEXT), "b": BLOB})


@pytest.mark.parametrize(
    ("shape", "sql"),
    [
        (
            StatementShape("item", Operation.INSERT, ("id", "v"), ()),
            'INSERT INTO "item" AS t ("id", "v") VALUES (?, ?)',
        ),
        (
            StatementShape("item", Operation.UPSERT, ("id", "v"), ("id",)),
            'INSERT INTO "item" AS t ("id", "v") VALUES (?, ?) ON CONFLICT ("id") DO UPDATE SET "v" = excluded."v"',
        ),
        (
            StatementShape("item", Operation.UPSERT, ("id",), ("id",)),
            'INSERT INTO "item" AS t ("id") VALUES (?) ON CONFLICT ("id") DO NOTHING',
        ),
        (StatementShape("item", Operation.UPDATE, ("v",), ("id",)), 'UPDATE "item" SET "v" = ? WHERE "id" = ?'),
        (StatementShape("item", Operation.DELETE, (), ("id",)), 'DELETE FROM "item" WHERE "id" = ?'),
    ],
    ids=["insert", "upsert", "upsert of the key alone", "update", "delete"],
)
def test_statements(shape: StatementShape, sql: str) -> None:
    assert render(shape, ITEM) == sql


@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        ("v", {"a": [1]}, '{"a":[1]}'),
        ("v", [1, 2], "[1,2]"),
        ("v", "\\x00ff", "\\x00ff"),
        ("b", "\\x00ff", b"\x00\xff"),
        ("b", "text", "text"),
        ("v", None, None),
    ],
)
def test_values_are_stored_in_sqlite_s_form(column: str, value: object, stored: Value) -> None:
    shape = StatementShape("item", Operation.UPDATE, (column,), ("id",))
    assert parameters(shape, ITEM, Delta("item", Operation.UPDATE, {"id": 7}, {column: value}, {})) == [stored, 7]


@pytest.mark.parametrize(
    ("identifier", "text"),
    [("plain", '"plain"'), ("two words", '"two words"'), ('a"b', '"a""b"'), ("100%", '"100%"'), ("", '""')],
)
def test_a_name_is_quoted_whatever_is_in_it(identifier: str, text: str) -> None:
    assert quoted(identifier) == text


@pytest.mark.parametrize("identifier", ['a"; DROP TABLE x; --', "select", "ünï", "%s"])
def test_a_database_reads_the_quoted_name_back(identifier: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE {quoted(identifier)} (id integer)")
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [(identifier,)]
