"""Tells of a value whether its column surely takes it. Pure.

The rule is one-sided: a value of which this module is not sure may be taken or refused, and the target has to be asked.
Limits are those of PostgreSQL, and lower than SQLite's. A kind of target with other limits gives the planner a rule of
its own. What a target judges beyond a column's type is not known here
(:attr:`kainite.uow.catalogue.tables.Table.judged`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import TypeAlias

from kainite.uow.catalogue.tables import Column
from kainite.uow.delta import Json

Accepts: TypeAlias = Callable[[Json], bool]

_MOST_TEXT = 600
"""Characters of a text that no index is too small for."""

_MOST_DIGITS = 1000
_REAL = (1e-30, 1e30)
_DOUBLE = (1e-300, 1e300)
_NAMED = re.compile(r"([a-z0-9 ]*[a-z0-9])\s*(?:\((\d+)(?:\s*,\s*(\d+))?\))?( with(?:out)? time zone)?", re.IGNORECASE)
_NUMBER = re.compile(r"-?[0-9]{1,500}(?:\.[0-9]{1,500})?")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
    r"(?:Z|[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?)?"
)
_INTEGERS = {"smallint": 15, "integer": 31, "bigint": 63}
_MOST_CHARACTERS = {
    **dict.fromkeys(("text", "character varying", "varchar"), _MOST_TEXT),
    **dict.fromkeys(("character", "char"), 1),
}


def accepting(column: Column) -> Accepts:
    """Returns what tells whether the column surely takes a value."""
    typed = _of_type(column.type)
    return partial(_nullable, typed) if column.nullable else typed


def _nullable(typed: Accepts, value: Json) -> bool:
    return value is None or typed(value)


def _of_type(declared: str) -> Accepts:
    match = _NAMED.fullmatch(declared.strip())
    if match is None:
        return _unsure
    name, first, second = match[1].lower(), match[2], match[3]
    if name in _INTEGERS and first is None:
        return partial(_whole, 2 ** _INTEGERS[name])
    if name in ("numeric", "decimal"):
        return partial(_number, 10 ** (int(first) - int(second or 0) if first else _MOST_DIGITS))
    if name in _MOST_CHARACTERS:
        most = _MOST_CHARACTERS[name] if first is None else int(first)
        return partial(_text, min(_MOST_TEXT, most))
    return _BY_NAME.get(name, _unsure)


def _unsure(_: Json) -> bool:
    return False


def _whole(limit: int, value: Json) -> bool:
    return type(value) is int and -limit <= value < limit


def _number(limit: int, value: Json) -> bool:
    """Returns whether a number has few enough digits before the point, also after it was rounded."""
    if type(value) is int:
        return -limit < value < limit
    if type(value) is str and _NUMBER.fullmatch(value):
        return abs(Decimal(value)) <= limit - 1
    return type(value) is float and abs(value) <= limit - 1


def _text(most: int, value: Json) -> bool:
    return type(value) is str and len(value) <= most and "\0" not in value and (value.isascii() or _encodable(value))


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True


def _boolean(value: Json) -> bool:
    return type(value) is bool


def _float(limits: tuple[float, float], value: Json) -> bool:
    return type(value) in (int, float) and (value == 0 or limits[0] < abs(value) < limits[1])


def _uuid(value: Json) -> bool:
    return type(value) is str and _UUID.fullmatch(value) is not None


def _date(value: Json) -> bool:
    return type(value) is str and _DAY.fullmatch(value) is not None and _calendar(date.fromisoformat, value)


def _timestamp(value: Json) -> bool:
    return type(value) is str and _MOMENT.fullmatch(value) is not None and _calendar(datetime.fromisoformat, value[:19])


def _calendar(read: Callable[[str], object], value: str) -> bool:
    try:
        read(value)
    except ValueError:
        return False
    return True


_BY_NAME: Mapping[str, Accepts] = {
    "boolean": _boolean,
    "uuid": _uuid,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp without time zone": _timestamp,
    "timestamp with time zone": _timestamp,
    "real": partial(_float, _REAL),
    "double precision": partial(_float, _DOUBLE),
}
