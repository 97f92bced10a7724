"""Statements in PostgreSQL's SQL, and their JSON parameters."""

from __future__ import annotations

import pytest

from kainite.uow.catalogue.tables import Column, TypeFamily
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.postgresql.rendering import parameters, render
from kainite_spark.targets.statements.planner import StatementShape
from support.tables import INTEGER, TEXT, columns, table

ITEM = table("item", {**columns(id=INTEGER, v=TEXT), **columns(**{"100%": INTEGER})})
D = 'json_to_recordset(%s::json) AS d("id" bigint'


@pytest.mark.parametrize(
    ("shape", "sql"),
    [
        (
            StatementShape("item", Operation.INSERT, ("id", "v"), ()),
            'INSERT INTO "public"."item" AS t ("id", "v") OVERRIDING SYSTEM VALUE '
            f'SELECT d."id", d."v" FROM {D}, "v" text)',
        ),
        (
            StatementShape("item", Operation.UPSERT, ("id",), ("id",)),
            f'INSERT INTO "public"."item" AS t ("id") OVERRIDING SYSTEM VALUE SELECT d."id" FROM {D}) '
            'ON CONFLICT ("id") DO NOTHING',
        ),
        (
            StatementShape("item", Operation.UPDATE, ("100%",), ("id",)),
            f'UPDATE "public"."item" AS t SET "100%%" = d."100%%" FROM {D}, "100%%" bigint) WHERE t."id" = d."id"',
        ),
        (
            StatementShape("item", Operation.DELETE, (), ("id",)),
            f'DELETE FROM "public"."item" AS t USING {D}) WHERE t."id" = d."id"',
        ),
        (
            StatementShape("item", Operation.UPDATE, ("id",), ("id",), moves=True),
            'UPDATE "public"."item" AS t SET "id" = d.new0 '
            'FROM ROWS FROM (json_to_recordset(%s::json) AS ("id" bigint), '
            'json_to_recordset(%s::json) AS ("id" bigint)) AS d(new0, old0) WHERE t."id" = d.old0',
        ),
    ],
    ids=["insert", "upsert of the key alone", "update", "delete", "update that changes the key"],
)
def test_statements(shape: StatementShape, sql: str) -> None:
    assert render(shape, ITEM) == sql


DOCUMENTS = table("page", {**columns(id=INTEGER), "100%": Column("100%", "doc", TypeFamily.DOCUMENT)}, ("100%",))
READ = 'json_to_recordset(%s::json) AS d("100%%" text'


@pytest.mark.parametrize(
    ("shape", "sql"),
    [
        (
            StatementShape("page", Operation.UPSERT, ("100%", "id"), ("100%",)),
            'INSERT INTO "public"."page" AS t ("100%%", "id") OVERRIDING SYSTEM VALUE SELECT d."100%%"::doc, d."id" '
            f'FROM {READ}, "id" bigint) ON CONFLICT ("100%%") DO UPDATE SET "id" = excluded."id"',
        ),
        (
            StatementShape("page", Operation.UPDATE, ("id",), ("100%",)),
            f'UPDATE "public"."page" AS t SET "id" = d."id" FROM {READ}, "id" bigint) WHERE t."100%%" = d."100%%"::doc',
        ),
        (
            StatementShape("page", Operation.DELETE, (), ("100%",)),
            f'DELETE FROM "public"."page" AS t USING {READ}) WHERE t."100%%" = d."100%%"::doc',
        ),
        (
            StatementShape("page", Operation.UPDATE, ("100%",), ("100%",), moves=True),
            'UPDATE "public"."page" AS t SET "100%%" = d.new0::doc '
            'FROM ROWS FROM (json_to_recordset(%s::json) AS ("100%%" text), '
            'json_to_recordset(%s::json) AS ("100%%" text)) AS d(new0, old0) WHERE t."100%%" = d.old0::doc',
        ),
    ],
    ids=["upsert", "update", "delete", "update that changes the key"],
)
def test_a_document_is_read_as_text(shape: StatementShape, sql: str) -> None:
    assert render(shape, DOCUMENTS) == sql


@pytest.mark.parametrize(
    ("shape", "delta", "expected"),
    [
        (StatementShape("item", Operation.UPDATE, ("v",), ("id",)), {"v": "a"}, ('[{"id":1,"v":"a"}]',)),
        (
            StatementShape("item", Operation.UPDATE, ("id",), ("id",), moves=True),
            {"id": 2},
            ('[{"id":2}]', '[{"id":1}]'),
        ),
        (StatementShape("item", Operation.DELETE, (), ("id",)), {}, ('[{"id":1}]',)),
        (StatementShape("item", Operation.UPDATE, ("v",), ("id",)), {"v": 2**70}, (f'[{{"id": 1, "v": {2**70}}}]',)),
    ],
    ids=["update", "update that changes the key", "delete", "an integer beyond 64 bits"],
)
def test_parameters(shape: StatementShape, delta: dict[str, object], expected: tuple[str, ...]) -> None:
    assert parameters(shape, [Delta("item", shape.op, {"id": 1}, delta, {})]) == expected
