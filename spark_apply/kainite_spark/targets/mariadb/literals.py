"""Values of deltas as literals of MariaDB's SQL, by their columns' types. Pure.

A literal has a type of its own, and a comparison converts what it compares: a number beside a text column makes the
server compare all of it as floating-point numbers, so that ``'5'``, ``'05'`` and ``'5x'`` are one. So a text column
gets a text, an integer column an integer, and a decimal column exact digits, as :mod:`kainite.uow.canonical` spells
them.

JSON has no moments. A text with an offset from UTC, which ``datetime`` and ``timestamp`` would not take, becomes the
same moment in UTC, which is the session's time zone. Bits are texts of 0 and 1.
"""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Final

import orjson

from kainite.base.errors import DeltaError, TargetRejectedError
from kainite.targets.mariadb.type_families import is_text
from kainite.uow.canonical import bytes_of, canonical_of
from kainite.uow.catalogue.tables import Column, TypeFamily
from kainite.uow.delta import Json

_WHOLE: Final = re.compile(r"\s*[+-]?[0-9]{1,30}\s*")
_OFFSET: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d(?::?\d\d)?)")
_NO_DAY: Final = re.compile(r"\d{4}-(?:00-\d\d|\d\d-00)")
"""A date without a month or a day, which no other database has: a key cannot have it, other columns can."""
_BITS: Final = re.compile("[01]{1,64}")
_FIXED: Final = re.compile(r"binary\((\d+)\)", re.IGNORECASE)
_PADDED: Final = re.compile(r"char\(", re.IGNORECASE)
_MOST_DIGITS: Final = 100
"""Digits on each side of the point; a decimal column has 65 at most."""


def literal(column: Column, value: Json) -> str:
    """Returns a value of a column in SQL.

    Raises:
        TargetRejectedError: no such column can have the value.
    """
    if value is None:
        if not column.nullable:  # an AUTO_INCREMENT column would get a number, and a timestamp the present time
            raise TargetRejectedError(f"column {column.name} cannot be null")
        return "NULL"
    try:
        return _literal(column, value)
    except DeltaError as error:
        raise TargetRejectedError(f"column {column.name}: {error}") from None


def quoted_text(value: str) -> str:
    """Returns a text in quotes; raises UnicodeEncodeError for half a surrogate pair."""
    if not value.isascii():
        value.encode()
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0")
    return f"'{escaped}'"


def _literal(column: Column, value: Json) -> str:
    match column.family:
        case TypeFamily.INTEGER:
            return _whole(column, value)
        case TypeFamily.NUMERIC:
            return _decimal(column, value)
        case TypeFamily.BYTES:
            return _binary(column, value)
        case TypeFamily.DATE if type(value) is str and _NO_DAY.fullmatch(value):
            return quoted_text(value)
        case TypeFamily.DATE | TypeFamily.UUID:
            return quoted_text(canonical_of([column])(value))
        case _:
            return _other(column, value)


def _other(column: Column, value: Json) -> str:
    if isinstance(value, dict | list):
        return quoted_text(_dumps(value))
    if is_text(column.type) or column.family is TypeFamily.DOCUMENT:
        text = value if isinstance(value, str) else _dumps(value)
        # The server stores no spaces at the end of a CHAR; NO PAD collations would not find it by them.
        return quoted_text(text.rstrip(" ") if _PADDED.match(column.type) else text)
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, float) and not math.isfinite(value):
        raise DeltaError(f"{value} is no number that fits")
    return repr(value) if isinstance(value, int | float) else _told(column, str(value))


def _told(column: Column, value: str) -> str:
    """Returns a text for a column of another type than text."""
    kind = column.type.partition("(")[0].lower()
    if kind == "bit" and _BITS.fullmatch(value):
        return f"b'{value}'"
    if kind in ("datetime", "timestamp") and _OFFSET.fullmatch(value):
        return quoted_text(_in_utc(value))
    return quoted_text(value)


def _in_utc(value: str) -> str:
    try:
        return datetime.fromisoformat(value).astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    except (ValueError, OverflowError):
        return value  # the server says what is wrong


def _whole(column: Column, value: Json) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if type(value) is int:
        return str(value)
    if type(value) is str and _WHOLE.fullmatch(value):
        return str(int(value))
    if type(value) is float and value.is_integer():
        return canonical_of([column])(value) or str(int(value))
    raise DeltaError(f"{value!r:.60} is no whole number")


def _decimal(column: Column, value: Json) -> str:
    if type(value) is int:
        return str(value)
    try:
        number = Decimal(repr(value) if type(value) is float else value) if type(value) in (float, str) else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite() or "_" in str(value):
        raise DeltaError(f"{value!r:.60} is no number")
    exponent = number.as_tuple().exponent
    if abs(number.adjusted()) > _MOST_DIGITS or not isinstance(exponent, int) or exponent < -_MOST_DIGITS:
        number = _shortened(number)
    return format(number, "f")


def _shortened(number: Decimal) -> Decimal:
    """Returns a number without digits that no column keeps."""
    if number.adjusted() > _MOST_DIGITS:
        raise DeltaError(f"{number:.10E} is no number that fits")
    return Decimal(0) if number.adjusted() < -_MOST_DIGITS else Decimal(format(number, f".{_MOST_DIGITS}f"))


def _binary(column: Column, value: Json) -> str:
    raw = bytes_of(value if isinstance(value, str) else _dumps(value))
    if fixed := _FIXED.match(column.type):  # a comparison would not find a shorter one
        raw = raw.ljust(int(fixed[1]), b"\0")
    return f"X'{raw.hex()}'"


def _dumps(value: Json) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # integers beyond 64 bits, and half a surrogate pair
        return json.dumps(value)
