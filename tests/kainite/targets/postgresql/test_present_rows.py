"""Rows of a PostgreSQL by their keys: odd names, and values that no column takes."""

from __future__ import annotations

from typing import Any

from kainite.targets.postgresql.connection import connect as connect_to_postgresql
from kainite.targets.present_row import RowAsked, read_target_rows


def test_a_value_that_its_column_cannot_take_spoils_no_other_look(postgres: str) -> None:
    with connect_to_postgresql(postgres, "test") as connection:
        connection.execute('CREATE SCHEMA "od.d"')
        connection.execute('CREATE TABLE "od.d"."t.x" (id int PRIMARY KEY, doc jsonb)')
        connection.execute("""INSERT INTO "od.d"."t.x" VALUES (1, '{"a": 1.50}')""")
    wanted: list[dict[str, Any]] = [{"id": "no number"}, {"id": 1}]
    found = read_target_rows(postgres, [RowAsked("od.d.t.x", key) for key in wanted])
    assert found == (None, {"id": "1", "doc": '{"a": 1.50}'})
