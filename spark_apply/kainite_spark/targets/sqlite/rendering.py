"""Statements in SQLite's SQL, executed once for each row, and JSON values as SQLite stores them. Pure.

A boolean is stored as 1 or 0, an object or a list as its JSON text. In a BLOB column, a string in
PostgreSQL's form of binary data, ``\\x`` and hexadecimal digits, is stored as the bytes. SQLite itself
converts numbers and strings to their column's affinity.
"""

from __future__ import annotations

from typing import TypeAlias

import orjson

from kainite.uow.catalogue.tables import Table
from kainite.uow.delta import Delta, Json, Operation
from kainite_spark.targets.statements.planner import StatementShape

Value: TypeAlias = str | bytes | int | float | None


def quoted(identifier: str) -> str:
    """Returns an identifier in double quotes, as SQLite reads it, whatever is in it."""
    return '"' + identifier.replace('"', '""') + '"'


def render(shape: StatementShape, table: Table) -> str:
    """Returns the statement for one row of ``shape``, whose values :func:`parameters` gives."""
    match shape.op:
        case Operation.INSERT:
            return _insert(shape, table)
        case Operation.UPSERT:
            return f"{_insert(shape, table)} {_on_conflict(shape)}"
        case Operation.UPDATE:
            assigned = ", ".join(f"{quoted(column)} = ?" for column in shape.columns)
            return f"UPDATE {quoted(table.name)} SET {assigned} WHERE {_where(shape)}"
        case Operation.DELETE:
            return f"DELETE FROM {quoted(table.name)} WHERE {_where(shape)}"
        case Operation.TRUNCATE:
            raise AssertionError("the planner has refused it")


def parameters(shape: StatementShape, table: Table, delta: Delta) -> list[Value]:
    """Returns the values of one row: the written columns, then the key that identifies the row.

    Raises:
        OverflowError, ValueError: SQLite cannot store a value.
    """
    image = {**delta.key, **delta.row}
    values = [_value(table, column, image[column]) for column in shape.columns]
    if shape.op in (Operation.UPDATE, Operation.DELETE):
        values += [_value(table, column, delta.key[column]) for column in shape.key]
    if _found_moved(shape):
        values += [_value(table, column, image[column]) for column in shape.key]
    return values


def _insert(shape: StatementShape, table: Table) -> str:
    columns = ", ".join(map(quoted, shape.columns))
    return f"INSERT INTO {quoted(table.name)} AS t ({columns}) VALUES ({', '.join('?' * len(shape.columns))})"


def _on_conflict(shape: StatementShape) -> str:
    changed = [quoted(column) for column in shape.columns if column not in shape.key]
    action = f"UPDATE SET {', '.join(f'{c} = excluded.{c}' for c in changed)}" if changed else "NOTHING"
    return f"ON CONFLICT ({', '.join(map(quoted, shape.key))}) DO {action}"


def _where(shape: StatementShape) -> str:
    found = " AND ".join(f"{quoted(column)} = ?" for column in shape.key)
    return f"({found}) OR ({found})" if _found_moved(shape) else found


def _found_moved(shape: StatementShape) -> bool:
    """Returns whether a row is found by its new key too: SQLite may have changed it already, with its parent's."""
    return shape.reached and shape.moves


def _value(table: Table, column: str, value: Json) -> Value:
    if isinstance(value, dict | list):
        return orjson.dumps(value).decode()
    if isinstance(value, str) and value.startswith("\\x") and table.columns[column].type.upper() == "BLOB":
        return bytes.fromhex(value[2:])
    scalar: Value = value
    return scalar
