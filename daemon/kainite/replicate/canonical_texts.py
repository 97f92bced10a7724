"""Makes one text of what a source and its target write for equal values, where MariaDB is one of them; pure.

:mod:`~kainite.replicate.mariadb_texts` says what is done where the target is MariaDB. Where the source is MariaDB, and
the target PostgreSQL, the source's text is the extractor's (:mod:`kainite.capture.mysql.text_forms`), and the target's
what its server writes for what its column has made of that text. What both are brought to depends on both types:

=========================================  ===========================================================================
source and target                          text
=========================================  ===========================================================================
any, and a text type                       as it is; for ``character(n)`` without spaces at the end
a number, and a number                     its digits without an exponent, and without zeros at the end of a fraction
``FLOAT`` and ``real``                     the number of four bytes
``FLOAT`` or ``DOUBLE``, and               the number of eight bytes
``double precision``
a date or a moment                         without zeros at the end of the fraction; without midnight if one side has
                                           no time of day; in UTC
``TIME`` and ``interval``                  without zeros at the end of the fraction
any, and ``boolean`` or ``uuid``           as :mod:`kainite.uow.canonical` spells it
an address, and ``inet``                   as Python spells it
a text, and ``jsonb``                      the document in ASCII, since a source may have half a surrogate pair, with
                                           sorted names and its numbers as above
any others                                 as it is
=========================================  ===========================================================================

The sign of a zero does not count: MariaDB loses it. Nothing is rounded: where the target's type cannot hold a value,
the texts differ. A text that is none of its type stays as it is, and so does a number with more digits than PostgreSQL
has.
"""

from __future__ import annotations

import ipaddress
import json
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, Final

from kainite.base.errors import DeltaError
from kainite.uow.canonical import Canonical, bytes_of, canonical_of
from kainite.uow.catalogue.tables import Column, TypeFamily

_NUMBERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "decimal", "float", "double"})
_DATES: Final = frozenset({"date", "datetime", "timestamp"})
_TEXTS: Final = ("text", "character varying", "citext", "name")
_BOOLEAN: Final = canonical_of([Column("", "boolean", TypeFamily.BOOLEAN)])
_UUID: Final = canonical_of([Column("", "uuid", TypeFamily.UUID)])
_MOST_DIGITS: Final = 131_072  # before the point of a numeric; it has fewer behind it
_NUMBER_MARK: Final = "\0number"  # no text of jsonb has a zero byte


class TextKind(StrEnum):
    """What becomes of a text; the module has the table."""

    AS_IT_IS = ""
    PADDED = "padded"
    NUMBER = "number"
    SINGLE = "single"
    DOUBLE = "double"
    DAY = "day"
    MOMENT = "moment"
    ZONED = "zoned"
    BOOLEAN = "boolean"
    ADDRESS = "address"
    UUID = "uuid"
    DOCUMENT = "document"
    BYTES = "bytes"
    PADDED_BYTES = "padded bytes"
    BITS = "bits"


def text_kind(data_type: str, target: str) -> TextKind:
    """Returns how the texts of a column are compared.

    Args:
        data_type: the name of the source's type, in lower case.
        target: the target's type, as PostgreSQL spells it.
    """
    if target.startswith(_TEXTS):
        return TextKind.AS_IT_IS
    if target.startswith("character("):
        return TextKind.PADDED
    if target == "boolean":
        return TextKind.BOOLEAN
    if target == "uuid":
        return TextKind.UUID
    if data_type in _NUMBERS:
        return _of_number(data_type, target)
    if data_type in _DATES:
        return _of_date(data_type, target)
    if data_type == "time":
        return TextKind.MOMENT
    if data_type in ("inet4", "inet6"):
        return TextKind.ADDRESS
    return TextKind.DOCUMENT if target == "jsonb" else TextKind.AS_IT_IS


def _of_number(data_type: str, target: str) -> TextKind:
    if data_type == "float" and target == "real":
        return TextKind.SINGLE
    if data_type in ("float", "double") and target == "double precision":
        return TextKind.DOUBLE
    return TextKind.NUMBER


def _of_date(data_type: str, target: str) -> TextKind:
    if "date" in (data_type, target):
        return TextKind.DAY
    return TextKind.ZONED if target.endswith("with time zone") else TextKind.MOMENT


def _number(text: str) -> str:
    if "e" in text or "E" in text:
        try:
            number = Decimal(text)
        except InvalidOperation:
            return text
        if abs(number.adjusted()) > _MOST_DIGITS:
            return text
        text = format(number, "f")
    text = _trimmed(text)
    return "0" if text == "-0" else text


def _trimmed(text: str) -> str:
    """Returns a text without zeros at the end of a fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text


def _single(text: str) -> str:
    try:
        return repr(struct.unpack("<f", struct.pack("<f", float(text)))[0] + 0.0)
    except (ValueError, OverflowError):
        return text


def _double(text: str) -> str:
    try:
        return repr(float(text) + 0.0)
    except ValueError:
        return text


def _moment(text: str) -> str:
    return _trimmed(text.removesuffix("+00"))


def _day(text: str) -> str:
    return _moment(text).removesuffix(" 00:00:00")


def _zoned(text: str) -> str:
    return f"{_moment(text)}+00"


def _boolean(text: str) -> str:
    return _spelled(_BOOLEAN, text)


def _uuid(text: str) -> str:
    return _spelled(_UUID, text)


def _spelled(canonical: Canonical, text: str) -> str:
    try:
        return canonical(text)
    except DeltaError:
        return text


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text


def _padded(text: str) -> str:
    return text.rstrip(" ")


def _bytes(text: str) -> str:
    try:
        return f"\\x{bytes_of(text).hex()}"
    except DeltaError:
        return text


def _padded_bytes(text: str) -> str:
    found = _bytes(text)
    while found.endswith("00") and len(found) % 2 == 0:
        found = found[:-2]
    return found


def _bits(text: str) -> str:
    return text.lstrip("0") or "0"


def _document(text: str) -> str:
    try:
        found = json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=_refuse)
        return json.dumps(found, sort_keys=True, default=_marked)
    except (ValueError, RecursionError):
        return text


def _marked(number: Decimal) -> list[str]:
    return [_NUMBER_MARK, _number(str(number))]


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


CANONICAL: Final[Mapping[TextKind, Callable[[str], str]]] = {
    TextKind.AS_IT_IS: str,
    TextKind.PADDED: _padded,
    TextKind.NUMBER: _number,
    TextKind.SINGLE: _single,
    TextKind.DOUBLE: _double,
    TextKind.DAY: _day,
    TextKind.MOMENT: _moment,
    TextKind.ZONED: _zoned,
    TextKind.BOOLEAN: _boolean,
    TextKind.ADDRESS: _address,
    TextKind.UUID: _uuid,
    TextKind.DOCUMENT: _document,
    TextKind.BYTES: _bytes,
    TextKind.PADDED_BYTES: _padded_bytes,
    TextKind.BITS: _bits,
}
"""Returns the one text of either side's text; a text that it returns stays as it is."""
