"""Gives each key value one spelling, so that ``5``, ``"5"`` and ``"05"`` in an integer column are equal.

The rule is one-sided. Values that are equal to the target must get the same spelling. Values that differ
may get the same spelling too, which costs parallelism and never correctness. Therefore text loses its trailing
spaces (``char(n)`` ignores them, ``varchar(n)`` may cut them off), binary strings lose their trailing zeros
(``binary(n)`` adds them), numbers are rounded to the column's scale, and all opaque values are spelled alike. An empty
spelling stands for several values; any other one for a single value, but for the spaces at the end of text and the
zeros at the end of binary strings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException
from functools import partial
from typing import TypeAlias

from kainite.base.errors import DeltaError
from kainite.uow.catalogue.tables import Column, TypeFamily
from kainite.uow.collations import general_ci, swedish_ci
from kainite.uow.delta import Json

Canonical: TypeAlias = Callable[[Json], str]
"""Maps a JSON value other than null to its spelling; raises DeltaError for a value that does not fit."""

_EXACT_FLOAT = 2.0**53
_MOST_WHOLE = 2**63
# PostgreSQL declares at most 1000 digits, and a value may be rounded up to one more.
_STORED = Context(prec=1_001, rounding=ROUND_HALF_UP, Emax=999_999, Emin=-999_999)
_SCALE = re.compile(r"(?:numeric|decimal)\s*\(\s*\d+\s*(?:,\s*(-?\d+)\s*)?\)", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{32}")
_HEXADECIMAL = re.compile(r"\\x(?:[0-9A-Fa-f]{2})*")
_TRUE = frozenset({"t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"})
_FALSE = frozenset({"f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"})
_FAR_DAY = re.compile(r"(\d{4,7})-(\d\d)-(\d\d)(?:[ T][\d:.+-]*)?( BC)?")
_TIMELESS = frozenset({"infinity", "-infinity"})


def canonical_of(columns: Sequence[Column]) -> Canonical:
    """Returns the spelling by which values of all ``columns`` can be compared.

    Args:
        columns: one column, or all columns that foreign keys relate to one another.
    """
    families = {column.family for column in columns}
    if families == {TypeFamily.INTEGER, TypeFamily.NUMERIC}:
        families = {TypeFamily.NUMERIC}
    if len(families) != 1:
        return _opaque
    family = families.pop()
    if family is TypeFamily.NUMERIC:
        scales = [scale for column in columns if (scale := _scale(column)) is not None]
        return partial(_numeric, scale=min(scales, default=None))
    return _BY_FAMILY[family]


def is_opaque(canonical: Canonical) -> bool:
    """Returns whether ``canonical`` spells all values alike."""
    return canonical is _opaque


def _scale(column: Column) -> int | None:
    """Returns the number of digits after the point that the column stores; None for all."""
    if column.family is TypeFamily.INTEGER:
        return 0
    match = _SCALE.search(column.type)
    return int(match[1] or 0) if match else None


def _opaque(_: Json) -> str:
    return ""


def _integer(value: Json) -> str:
    if type(value) is int:
        return str(value) if -_MOST_WHOLE <= value < _MOST_WHOLE else ""
    if type(value) is str:
        try:
            return _whole(int(value))
        except ValueError:
            pass
    if type(value) is float and value.is_integer() and abs(value) <= _EXACT_FLOAT:
        return _whole(int(value))
    raise DeltaError(f"{_shown(value)} is no whole number")


def _whole(number: int) -> str:
    # No integer column has it, but SQLite stores it there as a double, and takes its neighbours for the same key.
    return str(number) if -_MOST_WHOLE <= number < _MOST_WHOLE else ""


def _numeric(value: Json, scale: int | None) -> str:
    if type(value) not in (int, float, str):
        raise DeltaError(f"{_shown(value)} is no number")
    try:
        number = Decimal(repr(value) if type(value) is float else value)
        if scale is not None and number.is_finite():
            number = number.quantize(Decimal(1).scaleb(-scale), context=_STORED)
        if not number:
            return "0"  # normalize leaves a zero its sign and exponent
        normal = number.normalize(_STORED)
        return str(normal) if normal == number else ""  # too many digits to tell it from its neighbours
    except (DecimalException, ValueError):
        raise DeltaError(f"{_shown(value)} is no number that fits") from None


def _text(value: Json) -> str:
    if type(value) is str:
        return value.rstrip(" ")
    if type(value) is int:
        return str(value)
    raise DeltaError(f"{_shown(value)} is no text")


def _general_ci(value: Json) -> str:
    return general_ci(_text(value))


def _swedish_ci(value: Json) -> str:
    return swedish_ci(_text(value))


def bytes_of(value: Json) -> bytes:
    """Returns a binary string; raises DeltaError for a value that is no text, or not in UTF-8."""
    if type(value) is not str:
        raise DeltaError(f"{_shown(value)} is no binary string")
    try:
        return bytes.fromhex(value[2:]) if _HEXADECIMAL.fullmatch(value) else value.encode()
    except UnicodeEncodeError:
        raise DeltaError(f"{_shown(value)} is not in UTF-8") from None


def _bytes(value: Json) -> str:
    return "x" + bytes_of(value).rstrip(b"\0").hex()


def _boolean(value: Json) -> str:
    if type(value) is bool:
        return "t" if value else "f"
    if type(value) in (int, str):
        word = str(value).strip().lower()
        if word in _TRUE:
            return "t"
        if word in _FALSE:
            return "f"
    raise DeltaError(f"{_shown(value)} is neither true nor false")


def _uuid(value: Json) -> str:
    if type(value) is str:
        digits = value.strip().strip("{}").replace("-", "").lower()
        if _UUID.fullmatch(digits):
            return digits
    raise DeltaError(f"{_shown(value)} is no UUID")


def _date(value: Json) -> str:
    if type(value) is str:
        if value in _TIMELESS:
            return value
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError:
            pass
        try:
            return datetime.fromisoformat(value).date().isoformat()
        except ValueError:
            pass
        # Python's years are 1 to 9999.
        far = _FAR_DAY.fullmatch(value)
        if far is not None and (far[4] or len(far[1]) > 4):
            return f"{int(far[1]):04}-{far[2]}-{far[3]}{far[4] or ''}"
    raise DeltaError(f"{_shown(value)} is no date such as 2026-01-31")


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"


_BY_FAMILY: Mapping[TypeFamily, Canonical] = {
    TypeFamily.INTEGER: _integer,
    TypeFamily.TEXT: _text,
    TypeFamily.GENERAL_CI: _general_ci,
    TypeFamily.SWEDISH_CI: _swedish_ci,
    TypeFamily.BYTES: _bytes,
    TypeFamily.BOOLEAN: _boolean,
    TypeFamily.UUID: _uuid,
    TypeFamily.DATE: _date,
    TypeFamily.DOCUMENT: _opaque,
    TypeFamily.OPAQUE: _opaque,
}


def spelling_rule(column: Column) -> str:
    """Returns a name for the rule by which the column's values are spelled; equal rules spell equal values alike."""
    return f"{column.family} {_scale(column)}" if column.family is TypeFamily.NUMERIC else str(column.family)
