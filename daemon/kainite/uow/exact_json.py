"""Parses the JSON that children write, without losing digits.

A fast parser turns ``12345678901234567.89`` into a double, which is another number, and reports nothing.
Amounts of money must not change, so such a number becomes the string of its digits,
which a target takes for a number as well. Within an object or array nobody could tell such a string from one that
the document has, so the numbers that became strings can be told from other strings (:class:`Digits`).
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from functools import partial

import orjson

from kainite.uow.delta import Json

# A number of 16 characters and more (a double holds any of 15 digits), or one that may be too small for a double, where
# a number may begin: first of all, or after an opening bracket, a comma or a colon. A match inside a string costs time
# and has no other effect. A number that is not matched reads the same in either parser: a delta sent again must be the
# same again.
LONG_NUMBER = re.compile(rb"(?:\A|[\[,:])\s*-?\d(?:[\d.]{15}|[\d.]*[eE]-\d{3})")

# If each digit and point is written as 0, such a number contains one of these. Finding them takes a tenth of the time.
_ZEROS = bytes.maketrans(b"123456789.", b"0000000000")
_SIGNS_OF_ONE = (b"0" * 16, b"e-000", b"E-000")


class Digits(str):
    """The digits of a number that a double or 64 bits cannot hold."""

    __slots__ = ()


def loads(data: bytes) -> Json:
    """Parses a JSON document; numbers that a double or 64 bits cannot hold become strings.

    Raises:
        ValueError: the document is not JSON, or not UTF-8.
    """
    return _parsed(data, str)[0]


def loads_marked(data: bytes) -> tuple[Json, bool]:
    """Parses a JSON document as :func:`loads` does, but such numbers become :class:`Digits`; tells whether some may.

    Raises:
        ValueError: the document is not JSON, or not UTF-8.
    """
    return _parsed(data, Digits)


def _parsed(data: bytes, mark: type[str]) -> tuple[Json, bool]:
    # The fast parser is also the strict one: it refuses NaN and lone surrogates.
    value = orjson.loads(data)
    if not may_have_long_number(data) or LONG_NUMBER.search(data) is None:
        return value, False
    try:
        return json.loads(data, parse_float=partial(_float, mark), parse_int=partial(_int, mark)), True
    except RecursionError:
        raise ValueError("nested too deeply") from None


def may_have_long_number(data: bytes) -> bool:
    """Tells whether a document must be searched for :data:`LONG_NUMBER`; most need not."""
    zeros = data.translate(_ZEROS)
    return any(sign in zeros for sign in _SIGNS_OF_ONE)


def _float(mark: type[str], digits: str) -> float | str:
    value = float(digits)
    try:
        return value if Decimal(repr(value)) == Decimal(digits) else mark(digits)
    except InvalidOperation:
        # A Decimal takes no exponent of 19 digits and more.
        return mark(digits)


def _int(mark: type[str], digits: str) -> int | str:
    return int(digits) if len(digits) <= 20 and -(2**63) <= int(digits) < 2**64 else mark(digits)
