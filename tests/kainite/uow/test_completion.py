"""Deltas of sources that tell no keys and no types, completed by the target's table."""

from __future__ import annotations

from typing import Any

import pytest

from kainite.base.errors import DeltaError
from kainite.uow.catalogue.tables import Column, Table, TypeFamily
from kainite.uow.completion import completed, is_complete
from kainite.uow.delta import parse_delta

COLUMNS = (
    Column("id", "integer", TypeFamily.INTEGER, nullable=False),
    Column("day", "date", TypeFamily.DATE),
    Column("body", "bytea", TypeFamily.OPAQUE),
    Column("total", "integer", TypeFamily.INTEGER, generated=True),
)
EVENT = Table("event", "public", {column.name: column for column in COLUMNS}, ("id",))
LOG = Table("log", "public", {"what": Column("what", "text", TypeFamily.TEXT)})


def made(table: Table = EVENT, **item: Any) -> dict[str, Any]:
    delta = parse_delta({"uow": "T", "table": "event", **item})
    return {name: value for name, value in completed(delta, table).to_json().items() if name != "table"}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"op": "update", "row": {"id": 1, "day": "x"}}, {"op": "update", "key": {"id": 1}, "row": {"day": "x"}}),
        ({"op": "update", "row": {"id": 1}}, {"op": "update", "key": {"id": 1}, "row": {"id": 1}}),
        (
            {"op": "update", "row": {"id": 2, "day": "x"}, "before": {"id": 1}},
            {"op": "update", "key": {"id": 1}, "row": {"id": 2, "day": "x"}, "before": {"id": 1}},
        ),
        ({"op": "delete", "before": {"id": 1}}, {"op": "delete", "key": {"id": 1}, "before": {"id": 1}}),
        ({"op": "upsert", "row": {"id": 1}}, {"op": "upsert", "key": {"id": 1}, "row": {"id": 1}}),
        ({"op": "insert", "row": {"id": 1}}, {"op": "insert", "row": {"id": 1}}),
        ({"op": "update", "row": {"day": "x"}}, {"op": "update", "row": {"day": "x"}}),  # which the validator refuses
    ],
)
def test_the_key_comes_from_the_old_values_or_else_from_the_row(item: dict[str, Any], expected: dict[str, Any]) -> None:
    assert made(**item) == expected


@pytest.mark.parametrize("op", ["upsert", "insert"])
def test_an_upsert_into_a_table_without_a_key_is_an_insert(op: str) -> None:
    assert made(LOG, op=op, row={"what": "x"}) == {"op": "insert", "row": {"what": "x"}}


def test_values_get_the_spelling_of_the_tables_types() -> None:
    row = {"id": 1, "day": 0, "body": "SGVsbG8="}
    typed = {"day": "1970-01-01", "body": "\\x48656c6c6f"}
    assert made(op="update", values="dsql", row=row) == {"op": "update", "key": {"id": 1}, "row": typed}
    assert made(op="delete", values="dsql", before=row)["before"] == {"id": 1, **typed}


def test_a_column_that_is_absent_is_null_or_is_not_written() -> None:
    assert made(op="insert", values="dsql", row={"id": 1})["row"] == {"id": 1, "day": None, "body": None}
    assert made(op="insert", values="dsql-sparse", row={"id": 1})["row"] == {"id": 1}
    assert made(op="delete", values="dsql", before={"id": 1}) == {"op": "delete", "key": {"id": 1}, "before": {"id": 1}}


def test_a_value_of_another_type_is_refused_with_its_column() -> None:
    with pytest.raises(DeltaError, match="column 'body' of 'event'"):
        made(op="insert", values="dsql", row={"id": 1, "body": "no base64"})


def test_a_delta_that_a_source_told_whole_is_complete() -> None:
    for item in ({"op": "insert", "row": {"id": 1}}, {"op": "delete", "key": {"id": 1}}):
        assert is_complete(parse_delta({"uow": "T", "table": "event", **item}))
    assert not is_complete(parse_delta({"uow": "T", "table": "event", "op": "update", "row": {"id": 1}}))
