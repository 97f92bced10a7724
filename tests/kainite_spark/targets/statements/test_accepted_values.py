"""A value of which it is said that its column takes it is taken by PostgreSQL."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from kainite.uow.catalogue.tables import Column, TypeFamily
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.postgresql.rendering import parameters
from kainite_spark.targets.statements.accepted_values import accepting
from kainite_spark.targets.statements.planner import StatementShape

TYPES = (
    "smallint", "integer", "bigint", "numeric", "numeric(4,2)", "numeric(3,0)", "numeric(2,3)", "text",
    "character varying(3)", "character varying", "character(3)", "boolean", "uuid", "date",
    "timestamp without time zone", "timestamp with time zone", "timestamp(3) with time zone", "real",
    "double precision", "jsonb", "interval", "bytea", "integer[]", '"char"',
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 99, 999, 1000, 2**15 - 1, 2**15, -(2**15), 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30,
    0.5, 99.99, 99.995, 1e10, 1e35, 1e-35, 1e305, 5e-324, float("inf"), "", "1", "-1", "99", "99.5", "99.99", "99.994",
    "99.996", "abc", "abcd", "äöü", "a\0b", "\ud800", "t", "true", "x" * 5000, "2026-01-31", "2026-02-30", "0000-01-01",
    "2026-01-31T10:00:00Z", "2026-01-31 10:00:00+02", "2026-01-31 10:00:00.123456-14:59", "2026-01-31T24:30:00",
    "2026-01-31 10:00:00+19:00", "infinity", "550e8400-e29b-41d4-a716-446655440000", "550e8400", {"a": 1}, [1], "[1]",
)  # fmt: skip
SURE = {
    "integer": [None, 0, 1, -1, 99, 999, 1000, 2**15 - 1, 2**15, -(2**15), 2**31 - 1],
    "character varying(3)": [None, "", "1", "-1", "99", "abc", "äöü", "t", "[1]"],
    "boolean": [None, True, False],
    "date": [None, "2026-01-31"],
    "uuid": [None, "550e8400-e29b-41d4-a716-446655440000"],
    "jsonb": [None],
}


@pytest.fixture(scope="module")
def connection(postgres_server: str) -> Any:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("declared", TYPES)
def test_a_value_that_is_surely_taken_is_taken(connection: Any, declared: str) -> None:
    accepts = accepting(Column("v", declared, TypeFamily.OPAQUE))
    connection.execute(
        f"CREATE TEMPORARY TABLE taken (v {declared}); CREATE INDEX ON taken (v)"
        if declared not in ("jsonb",)
        else f"CREATE TEMPORARY TABLE taken (v {declared})"
    )
    try:
        for value in filter(accepts, VALUES):
            shape = StatementShape("taken", Operation.INSERT, ("v",), ())
            (json,) = parameters(shape, [Delta("taken", Operation.INSERT, {}, {"v": value}, {})])
            connection.execute(
                f"INSERT INTO taken SELECT v FROM json_to_recordset(%s::json) AS d(v {declared})", [json]
            )
    finally:
        connection.execute("DROP TABLE taken")


@pytest.mark.parametrize("declared", SURE)
def test_what_is_sure(declared: str) -> None:
    accepts = accepting(Column("v", declared, TypeFamily.OPAQUE))
    assert [value for value in VALUES if accepts(value)] == SURE[declared]


def test_a_column_that_must_not_be_null_takes_no_null() -> None:
    assert not accepting(Column("v", "integer", TypeFamily.INTEGER, nullable=False))(None)
