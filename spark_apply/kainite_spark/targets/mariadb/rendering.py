"""Statements in MariaDB's SQL: one for all rows of an insert, one for each row of anything else. Pure.

Many statements go in one packet (:mod:`~kainite_spark.targets.mariadb.packet`), so a statement a row costs no round
trip. It is also what keeps rows of a table that references itself in order: the server checks foreign keys row by row,
in an order of its own where a statement names several rows, but for the rows of an INSERT.

An upsert is an UPDATE, and an INSERT of the rows that it did not meet. ``ON DUPLICATE KEY UPDATE`` would change a row
that shares any unique value with the new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kainite.base.errors import TargetRejectedError
from kainite.uow.catalogue.tables import ReferentialAction, Table
from kainite.uow.delta import Delta, Operation, Row
from kainite_spark.targets.mariadb.literals import literal
from kainite_spark.targets.statements.planner import StatementShape

MOST_CHARACTERS: Final = 2**19
"""Most characters of an INSERT, and of a packet; a single row that has more goes alone."""


def table_name(table: Table) -> str:
    """Returns a table's name as MariaDB reads it."""
    return ".".join(quoted(part) for part in (table.schema, table.bare_name) if part)


def quoted(identifier: str) -> str:
    """Returns an identifier in backticks, whatever is in it."""
    return "`" + identifier.replace("`", "``") + "`"


def inserts(shape: StatementShape, table: Table, deltas: Sequence[Delta]) -> Iterator[tuple[str, Sequence[Delta]]]:
    """Yields INSERT statements, each with its rows' deltas in their order.

    Raises:
        TargetRejectedError: a value does not fit its column.
    """
    columns = ", ".join(map(quoted, shape.columns))
    into = f"INSERT INTO {table_name(table)} ({columns}) VALUES "
    rows: list[str] = []
    begin, size = 0, 0
    for place, delta in enumerate(deltas):
        row = _values(shape, table, delta)
        if rows and size + len(row) > MOST_CHARACTERS:
            yield into + ", ".join(rows), deltas[begin:place]
            rows, begin, size = [], place, 0
        rows.append(row)
        size += len(row)
    yield into + ", ".join(rows), deltas[begin:]


def change(shape: StatementShape, table: Table, delta: Delta) -> str:
    """Returns the statement that changes or deletes one row, for an upsert the one that updates it.

    Raises:
        TargetRejectedError: a value does not fit its column.
    """
    image = {**delta.key, **delta.row}
    found = _same(table, delta.key)
    if shape.op is Operation.DELETE:
        return f"DELETE FROM {table_name(table)} WHERE {found}"
    if shape.op is Operation.UPSERT:
        found = _same(table, {column: image[column] for column in shape.key})
    elif shape.reached and shape.moves:
        # The server may have changed the key already, with the parent's.
        found = f"({found}) OR ({_same(table, {column: image[column] for column in shape.key})})"
    written = [column for column in shape.columns if shape.op is not Operation.UPSERT or column not in shape.key]
    assigned = ", ".join(f"{quoted(c)} = {_literal(table, c, image)}" for c in written or shape.key)
    return f"UPDATE {table_name(table)} SET {assigned} WHERE {found}"


def emptying(table: Table) -> Iterator[str]:
    """Yields the statements that delete all rows of a table.

    The server checks a foreign key of the table to itself row by row, in an order of its own.
    """
    held = [key for key in table.foreign_keys if key.parent == table.name]
    for column in dict.fromkeys(name for key in held for name in key.columns if table.columns[name].nullable):
        yield f"UPDATE {table_name(table)} SET {quoted(column)} = NULL WHERE {quoted(column)} IS NOT NULL"
    yield f"DELETE FROM {table_name(table)}"


def releases(shape: StatementShape, table: Table, delta: Delta) -> Iterator[str]:
    """Yields what must come before a delete, or a change of key, of a row that names itself by a foreign key.

    The server checks such a foreign key while the row is still there, or is there already under its new key.
    """
    written = frozenset(shape.columns)
    for key in table.foreign_keys:
        if key.parent != table.name or not (nullable := [c for c in key.columns if table.columns[c].nullable]):
            continue
        if shape.op is Operation.DELETE:
            is_held = key.on_delete is ReferentialAction.NO_ACTION
        else:
            is_held = written.issuperset(key.columns) and not written.isdisjoint(key.parent_columns)
        if is_held:
            pairs = zip(key.columns, key.parent_columns, strict=True)
            itself = " AND ".join(f"{quoted(one)} = {quoted(other)}" for one, other in pairs)
            found = f"{_same(table, delta.key)} AND {itself}"
            yield f"UPDATE {table_name(table)} SET {quoted(nullable[0])} = NULL WHERE {found}"


def _values(shape: StatementShape, table: Table, delta: Delta) -> str:
    image = {**delta.key, **delta.row}
    return f"({', '.join(_literal(table, column, image) for column in shape.columns)})"


def _same(table: Table, key: Row) -> str:
    return " AND ".join(f"{quoted(column)} = {_literal(table, column, key)}" for column in key)


def _literal(table: Table, column: str, row: Row) -> str:
    try:
        return literal(table.columns[column], row[column])
    except TargetRejectedError as error:
        raise TargetRejectedError(f"{table.name}: {error}") from None
