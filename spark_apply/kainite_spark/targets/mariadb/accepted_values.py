"""Tells of a value whether its column of MariaDB or MySQL surely takes it. Pure.

The rule is one-sided, as that of :mod:`kainite_spark.targets.statements.accepted_values`, whose place it takes:
MariaDB's texts may have a character set that lacks characters, its types have lengths that PostgreSQL's lack, and its
time stamps end in 2038.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Final

from kainite.uow.catalogue.tables import Column
from kainite.uow.delta import Json
from kainite_spark.targets.statements import accepted_values as general
from kainite_spark.targets.statements.accepted_values import Accepts

_NAMED: Final = re.compile(r"([a-z]+)(?:\((\d+)(?:,(\d+))?\))?( unsigned)?( zerofill)?")
_BITS: Final[Mapping[str, int]] = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_TEXTS: Final = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
_MOST_TEXT: Final = 255
_AS_ELSEWHERE: Final[Mapping[str, str]] = {"double": "double precision", "date": "date"}


def accepting(column: Column) -> Accepts:
    """Returns what tells whether the column surely takes a value."""
    return partial(_accepts, column.nullable, _of_type(column))


def _accepts(nullable: bool, typed: Accepts, value: Json) -> bool:
    return nullable if value is None else typed(value)


def _of_type(column: Column) -> Accepts:
    match = _NAMED.fullmatch(column.type.lower())
    if match is None:
        return _unsure
    name, first, second, unsigned = match[1], match[2], match[3], match[4] is not None
    if name in _BITS:
        bits = _BITS[name]
        low, high = (0, 2**bits) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1))
        return partial(_whole, low, high)
    if name in _TEXTS:
        return partial(_text, min(_MOST_TEXT, int(first)) if first else _MOST_TEXT)
    if unsigned:
        return _unsure
    if name == "decimal":
        return general.accepting(_spelled(column, f"numeric({first},{second or 0})"))
    return general.accepting(_spelled(column, _AS_ELSEWHERE[name])) if name in _AS_ELSEWHERE else _unsure


def _spelled(column: Column, kind: str) -> Column:
    return Column(column.name, kind, column.family)


def _unsure(_: Json) -> bool:
    return False


def _whole(low: int, high: int, value: Json) -> bool:
    return type(value) is int and low <= value < high


def _text(most: int, value: Json) -> bool:
    return type(value) is str and len(value) <= most and value.isascii()
