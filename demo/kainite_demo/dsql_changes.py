"""The net effect of a PostgreSQL transaction, as Aurora DSQL streams it: one change a row. Pure.

DSQL compares each row's state before a transaction with its state after:

==========================  =========================  =====================================
before                      after                      the change
==========================  =========================  =====================================
no row                      a row                      ``c``, the whole row
a row                       a row                      ``u``, the whole row
a row                       no row                     ``d``, the key
no row                      no row                     none
==========================  =========================  =====================================

A row is known by its primary key; in a table without one each inserted row is a row of its own. Values are
spelled as DSQL spells them in JSON, by PostgreSQL's types.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, TypeAlias

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import (
    UNCHANGED,
    DeleteMessage,
    InsertMessage,
    LostChange,
    Relation,
    TruncateMessage,
    UpdateMessage,
    Values,
)
from kainite.capture.postgresql.transactions import SourceChange

Json: TypeAlias = Any
Row: TypeAlias = dict[str, Json]
_Rows: TypeAlias = "dict[_Place, NetChange | None]"

_MICROSECOND: Final = timedelta(microseconds=1)
# PostgreSQL leaves the minutes of a time zone out: 12:00:00+00.
_HOURS_ONLY: Final = re.compile(r"[+-]\d\d$")


@dataclass(frozen=True, slots=True)
class NetChange:
    """What a transaction did to one row.

    Attributes:
        schema, table: the names of the row's schema and table.
        op: ``c``, ``u`` or ``d``.
        before: the key of a row that is gone; None otherwise.
        after: the whole row; None for one that is gone.
    """

    schema: str
    table: str
    op: str
    before: Row | None
    after: Row | None


@dataclass(frozen=True, slots=True)
class _Place:
    """The identity of a row: its table and key, and a number for a row without a key."""

    schema: str
    table: str
    key: tuple[tuple[str, Json], ...]
    number: int


def net_changes(changes: Iterable[SourceChange]) -> list[NetChange]:
    """Returns the net effect of a transaction's changes, in the order in which its rows were first touched.

    Raises:
        SourceError: a row of a table without a primary key was updated or deleted.
    """
    rows: _Rows = {}
    existed: dict[_Place, bool] = {}
    for number, change in enumerate(changes):
        for place, was_there, row in _steps(change, number):
            rows[place] = _net(place, existed.setdefault(place, was_there), row)
    return [change for change in rows.values() if change]


def _steps(change: SourceChange, number: int) -> list[tuple[_Place, bool, Row | None]]:
    """Returns each row that a change touches, whether it was there, and its new content; another key is another row."""
    relation, row = change.relation, change.row
    match row:
        case InsertMessage():
            return [(_place(relation, row.new, number), False, _row(relation, row.new))]
        case DeleteMessage():
            return [(_place(relation, row.key or row.old or ()), True, None)]
        case UpdateMessage():
            new, after = _place(relation, row.new), _row(relation, row.new)
            old = _place(relation, row.key) if row.key else new
            return [(new, True, after)] if old == new else [(old, True, None), (new, False, after)]
        case LostChange(cause=cause):
            raise SourceError(f"a change of {relation.schema}.{relation.name} cannot be carried: {cause}")
        case TruncateMessage():
            raise SourceError(f"TRUNCATE of {relation.schema}.{relation.name}: DSQL has no such statement")


def _net(place: _Place, existed: bool, row: Row | None) -> NetChange | None:
    if row is None:
        return NetChange(place.schema, place.table, "d", dict(place.key), None) if existed else None
    return NetChange(place.schema, place.table, "u" if existed else "c", None, row)


def _place(relation: Relation, values: Values, number: int | None = None) -> _Place:
    pairs = zip(relation.columns, values, strict=True)
    key = tuple((column.name, spelled(value, column.type_oid)) for column, value in pairs if column.is_key)
    if not key and number is None:
        raise SourceError(f"{relation.schema}.{relation.name} has no primary key: DSQL does not tell which row changed")
    return _Place(relation.schema, relation.name, key, 0 if key else number or 0)


def _row(relation: Relation, values: Values) -> Row:
    pairs = zip(relation.columns, values, strict=True)
    return {column.name: spelled(value, column.type_oid) for column, value in pairs}


def spelled(text: Any, type_oid: int) -> Json:
    """Returns a value as DSQL's JSON has it, given PostgreSQL's text and the value's type.

    Raises:
        SourceError: PostgreSQL did not send the value, since it is stored out of line and was not changed.
    """
    if text is UNCHANGED:
        raise SourceError("a large value that did not change is not in PostgreSQL's stream: DSQL sends whole rows")
    convert = _SPELLINGS.get(type_oid)
    return text if text is None or convert is None else convert(text)


def _float(text: str) -> Json:
    return text if text in ("NaN", "Infinity", "-Infinity") else float(text)


def _binary(text: str) -> str:
    return base64.b64encode(bytes.fromhex(text.removeprefix("\\x"))).decode()


def _days(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


def _micros(text: str) -> int:
    moment = datetime.fromisoformat(f"{text}:00" if _HOURS_ONLY.search(text[10:]) else text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // _MICROSECOND


def _of_day(text: str) -> int:
    moment = time.fromisoformat(text)
    passed = timedelta(hours=moment.hour, minutes=moment.minute, seconds=moment.second, microseconds=moment.microsecond)
    return passed // _MICROSECOND


# OIDs of pg_type. All other types are text in DSQL too: numeric, text, varchar, uuid, json.
_SPELLINGS: Final[dict[int, Callable[[str], Json]]] = {
    16: "t".__eq__,
    17: _binary,
    20: int,
    21: int,
    23: int,
    26: int,
    700: _float,
    701: _float,
    1042: str.rstrip,
    1082: _days,
    1083: _of_day,
    1114: _micros,
    1184: _micros,
}
