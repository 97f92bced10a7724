"""Turns changed rows into records of the stream; pure.

A record is what ``kainite-extract-postgresql`` gives, so that one record processor reads both::

    {"uow":"my-0-1-42-17","number":17,"ordinal":0,"relation":"account","operation":"update",
     "types":{"id":20,…},"key":{"id":"5"},"new":{"id":"5","balance":"-17.00",…},"old":{"email":"a@b.c"}}
    {"uow":"my-0-1-42-17","number":17,"end":true,"count":4,"time":1705318200000000000}

``types`` are the OIDs of PostgreSQL's types that spell values alike. ``new`` has all columns, also those that kept
their value: a column that is left out may be changed by the target (``ON UPDATE CURRENT_TIMESTAMP``). ``old`` has the
old values of columns with an index, by which units are ordered. A column that the source computes is left out.

A ``TRUNCATE`` that is to be applied has an empty ``key`` and ``new``.

A change that cannot become a delta has ``refused``, the reason, in place of ``key`` and ``new``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kainite.capture.mysql.rows import MISSING, ChangedRow, Image, RowOperation
from kainite.capture.mysql.table_map import BINARY, MappedColumn, Type
from kainite.capture.mysql.values import Reader, UncarriedError

MAX_CHANGE: Final = 64 * 2**20
"""Most characters of a change of a row: what a record processor may write on a line."""

_TEXT_OID: Final = 25
_BYTES_OID: Final = 17
_OIDS: Final[Mapping[int, int]] = {
    **dict.fromkeys((Type.TINY, Type.SHORT, Type.INT24, Type.LONG, Type.LONGLONG, Type.YEAR), 20),
    Type.FLOAT: 700,
    Type.DOUBLE: 701,
    Type.DECIMAL: 1700,
    Type.DATE: 1082,
    Type.NEWDATE: 1082,
    Type.TIME: 1083,
    Type.DATETIME: 1114,
    Type.TIMESTAMP: 1184,
    Type.BIT: 1560,
    Type.JSON: 114,
}


def oid_of(column: MappedColumn) -> int:
    """Returns the OID of PostgreSQL's type that spells values as the column does."""
    if column.type in (Type.BLOB, Type.STRING, Type.VARCHAR, Type.VAR_STRING) and column.collation == BINARY:
        return _BYTES_OID
    return _OIDS.get(column.type, _TEXT_OID)


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A table, as its changes are read.

    Attributes:
        relation: the name that deltas have.
        names: its columns' names.
        oids: their types.
        readers: what reads their values.
        given: the places of the columns that are given.
        key: the places of the primary key's columns.
        old: the places of the columns whose old values are given.
        problem: why no change of the table can be carried; empty where it can.
    """

    relation: str
    names: tuple[str, ...] = ()
    oids: tuple[int, ...] = ()
    readers: tuple[Reader, ...] = ()
    given: tuple[int, ...] = ()
    key: tuple[int, ...] = ()
    old: tuple[int, ...] = ()
    problem: str = ""


def change_record(
    unit: Mapping[str, Any], ordinal: int, table: SourceTable, operation: RowOperation, row: ChangedRow | str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the record of a change in two parts: where the change belongs, and what the row is.

    Args:
        unit: the name and the number of the transaction's unit.
        ordinal: the change's place in its transaction, from 0.
        table: the table.
        operation: what happened to the row.
        row: the row; or why it cannot be carried.
    """
    place = {**unit, "ordinal": ordinal, "relation": table.relation, "operation": operation}
    if isinstance(row, str):
        return place, {"refused": row}
    try:
        return place, _row(table, row)
    except UncarriedError as error:
        return place, {"refused": str(error)}


def emptied_record(unit: Mapping[str, Any], ordinal: int, relation: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the record of a TRUNCATE of a table in two parts, as :func:`change_record`."""
    place = {**unit, "ordinal": ordinal, "relation": relation, "operation": "truncate"}
    return place, {"types": {}, "key": {}, "new": {}}


def _row(table: SourceTable, row: ChangedRow) -> dict[str, Any]:
    first = row.before if row.before is not None else row.after
    assert first is not None
    key, new = _texts(table, first, table.key), _texts(table, row.after, table.given)
    old = _texts(table, row.before, table.old)
    if len(key) < len(table.key) or _lacks(new, row.after, table.given) or _lacks(old, row.before, table.old):
        raise UncarriedError(
            "the row lacks columns: the session that changed it had another binlog_row_image than FULL"
        )
    if sum(len(text) for part in (key, new, old) for text in part.values() if text is not None) > MAX_CHANGE:
        raise UncarriedError(f"the change has more than {MAX_CHANGE // 2**20} MiB")
    sent = key.keys() | new.keys() | old.keys()
    types = {name: oid for name, oid in zip(table.names, table.oids, strict=True) if name in sent}
    return {"types": types, "key": key, "new": new, **({"old": old} if old else {})}


def _lacks(found: Mapping[str, str | None], image: Image | None, places: Sequence[int]) -> bool:
    """Returns whether an image that the change has lacks columns."""
    return image is not None and len(found) < len(places)


def _texts(table: SourceTable, image: Image | None, places: Sequence[int]) -> dict[str, str | None]:
    """Returns the values that an image has, by their columns' names."""
    if image is None:
        return {}
    return {table.names[place]: value for place in places if (value := image[place]) is not MISSING}
