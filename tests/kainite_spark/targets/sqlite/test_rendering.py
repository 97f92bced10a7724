"""Statements in SQLite's SQL, and the values of a row."""

from __future__ import annotations

import pytest

from kainite.uow.catalogue.tables import Column, TypeFamily
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.sqlite.rendering import Value, parameters, render
from kainite_spark.targets.statements.planner import Shape
from support.tables import INTEGER, TEXT, columns, table

BLOB = Column("b", "BLOB", TypeFamily.OPAQUE)
ITEM = table("item", {**columns(id=INTEGER, v=TEXT), "b": BLOB})


@pytest.mark.parametrize(
    ("shape", "sql"),
    [
        (Shape("item", Operation.INSERT, ("id", "v"), ()), 'INSERT INTO "item" ("id", "v") VALUES (?, ?)'),
        (
            Shape("item", Operation.UPSERT, ("id", "v"), ("id",)),
            'INSERT INTO "item" ("id", "v") VALUES (?, ?) ON CONFLICT ("id") DO UPDATE SET "v" = excluded."v"',
        ),
        (
            Shape("item", Operation.UPSERT, ("id",), ("id",)),
            'INSERT INTO "item" ("id") VALUES (?) ON CONFLICT ("id") DO NOTHING',
        ),
        (Shape("item", Operation.UPDATE, ("v",), ("id",)), 'UPDATE "item" SET "v" = ? WHERE "id" = ?'),
        (Shape("item", Operation.DELETE, (), ("id",)), 'DELETE FROM "item" WHERE "id" = ?'),
    ],
    ids=["insert", "upsert", "upsert of the key alone", "update", "delete"],
)
def test_statements(shape: Shape, sql: str) -> None:
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
    shape = Shape("item", Operation.UPDATE, (column,), ("id",))
    assert parameters(shape, ITEM, Delta("item", Operation.UPDATE, {"id": 7}, {column: value}, {})) == [stored, 7]
