"""Reads the values of a row as the binlog has them, and spells them as texts; no I/O.

===========================================  =========================================================================
type                                         text
===========================================  =========================================================================
integers, ``YEAR``, ``DECIMAL``              digits; a year 0 is ``0``
``FLOAT``, ``DOUBLE``                        the fewest digits that give the same number
``BIT``                                      as many 0 and 1 as the column has bits
texts, ``ENUM``, ``SET``                     the characters; the members of a set behind commas
``BINARY``, ``VARBINARY``, ``BLOB``          ``\\x`` and hexadecimal digits; ``BINARY`` with all its zeros
``DATE``, ``DATETIME``, ``TIME``             as the server writes them, zeros and more than 24 hours included
``TIMESTAMP``                                the moment in UTC, with ``+00`` behind it; zero without
``JSON`` of MySQL                            the document; MariaDB's is a text
===========================================  =========================================================================

A value that no text can say raises :class:`UncarriedError`: its change fails its unit.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from kainite.base.errors import SourceError
from kainite.capture.mysql.binary_json import json_text
from kainite.capture.mysql.decimals import decimal_size, decimal_text
from kainite.capture.mysql.table_map import BINARY, MappedColumn, Type

Reader: TypeAlias = Callable[[bytes, int], tuple[str, int]]
"""Returns the text of the value at a place in the bytes, and the place behind it."""
TextOf: TypeAlias = Callable[[bytes, int], str]
"""Returns the characters of bytes, by the number of their collation; raises UncarriedError where they are none."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = (1_000_000, 10_000, 100, 1)
_MOST_DIGITS: Final = 6
"""Microseconds of the last digit of a fraction, by its bytes."""
_INTEGERS: Final = {Type.TINY: 1, Type.SHORT: 2, Type.INT24: 3, Type.LONG: 4, Type.LONGLONG: 8}
_REFUSED: Final = {
    Type.OLD_TIMESTAMP: "the temporal format of before MariaDB 10.1 and MySQL 5.6; ALTER TABLE … FORCE writes it anew",
    Type.OLD_TIME: "the temporal format of before MariaDB 10.1 and MySQL 5.6; ALTER TABLE … FORCE writes it anew",
    Type.OLD_DATETIME: "the temporal format of before MariaDB 10.1 and MySQL 5.6; ALTER TABLE … FORCE writes it anew",
    Type.BLOB_COMPRESSED: "the attribute COMPRESSED",
    Type.VARCHAR_COMPRESSED: "the attribute COMPRESSED",
    Type.GEOMETRY: "a geometry",
    Type.VECTOR: "a vector",
}


class UncarriedError(Exception):
    """A change that no record can say as one of a row."""


def reader_of(column: MappedColumn, text_of: TextOf) -> Reader:
    """Returns what reads a column's values.

    Raises:
        UncarriedError: the column has a type whose values are not carried.
    """
    kind, size = column.type, column.size
    if kind in _INTEGERS:
        return _integer(_INTEGERS[Type(kind)], signed=not column.unsigned)
    if kind in (Type.FLOAT, Type.DOUBLE):
        return _float if kind == Type.FLOAT else _double
    if kind in (Type.VARCHAR, Type.VAR_STRING, Type.STRING):
        pad = size if kind == Type.STRING and column.collation == BINARY else 0
        return _prefixed(1 if size < 256 else 2, column.collation, text_of, pad)
    if kind == Type.BLOB:
        return _prefixed(size, column.collation, text_of)
    if kind == Type.DECIMAL:
        return _decimal(size, column.scale)
    if kind in _TEMPORAL:
        if size > _MOST_DIGITS:
            raise UncarriedError(f"column {column.name} says that its seconds have {size} decimals, and 6 are the most")
        return _TEMPORAL[Type(kind)](size)
    if kind in (Type.ENUM, Type.SET):
        return _member(column, text_of) if kind == Type.ENUM else _members(column, text_of)
    if kind == Type.BIT:
        return _bits(size)
    if kind == Type.JSON:
        return _json(size)
    raise UncarriedError(f"column {column.name} has {_REFUSED.get(Type(kind), 'a type that is not carried')}")


def _integer(size: int, *, signed: bool) -> Reader:
    def read(data: bytes, at: int) -> tuple[str, int]:
        return str(int.from_bytes(data[at : at + size], "little", signed=signed)), at + size

    return read


def float_text(number: float) -> str:
    """Returns the fewest digits, six at least, that give the same number of four bytes."""
    wanted = struct.pack("<f", number)
    for digits in range(6, 10):
        text = f"{number:.{digits}g}"
        if struct.pack("<f", float(text)) == wanted:
            break
    return text


def _float(data: bytes, at: int) -> tuple[str, int]:
    return float_text(_unpacked("<f", data, at)[0]), at + 4


def _double(data: bytes, at: int) -> tuple[str, int]:
    (number,) = _unpacked("<d", data, at)
    return repr(number), at + 8


def _prefixed(width: int, collation: int, text_of: TextOf, pad: int = 0) -> Reader:
    def read(data: bytes, at: int) -> tuple[str, int]:
        begin = at + width
        end = begin + int.from_bytes(data[at:begin], "little")
        raw = data[begin:end]
        return ("\\x" + raw.ljust(pad, b"\0").hex() if collation == BINARY else text_of(raw, collation)), end

    return read


def _json(width: int) -> Reader:
    def read(data: bytes, at: int) -> tuple[str, int]:
        begin = at + width
        end = begin + int.from_bytes(data[at:begin], "little")
        return json_text(data[begin:end]), end

    return read


def _decimal(precision: int, scale: int) -> Reader:
    size = decimal_size(precision, scale)

    def read(data: bytes, at: int) -> tuple[str, int]:
        return decimal_text(data[at : at + size], precision, scale), at + size

    return read


def _bits(bits: int) -> Reader:
    size = (bits + 7) // 8

    def read(data: bytes, at: int) -> tuple[str, int]:
        return f"{int.from_bytes(data[at : at + size], 'big'):0{bits}b}", at + size

    return read


def _member(column: MappedColumn, text_of: TextOf) -> Reader:
    def read(data: bytes, at: int) -> tuple[str, int]:
        place = int.from_bytes(data[at : at + column.size], "little")
        if place > len(column.members):
            raise UncarriedError(f"column {column.name} has a value that is no member of its ENUM")
        # 0 stands for what was no member when it was written, and reads as an empty text.
        return (text_of(column.members[place - 1], column.collation) if place else ""), at + column.size

    return read


def _members(column: MappedColumn, text_of: TextOf) -> Reader:
    def read(data: bytes, at: int) -> tuple[str, int]:
        chosen = int.from_bytes(data[at : at + column.size], "little")
        if chosen >> len(column.members):
            raise UncarriedError(f"column {column.name} has a value that is no member of its SET")
        names = [one for place, one in enumerate(column.members) if chosen >> place & 1]
        return ",".join(text_of(one, column.collation) for one in names), at + column.size

    return read


def _date(_: int) -> Reader:
    def read(data: bytes, at: int) -> tuple[str, int]:
        packed = int.from_bytes(data[at : at + 3], "little")
        return f"{packed >> 9:04d}-{packed >> 5 & 15:02d}-{packed & 31:02d}", at + 3

    return read


def _year(_: int) -> Reader:
    def read(data: bytes, at: int) -> tuple[str, int]:
        value = data[at] if at < len(data) else 0
        return str(value and 1900 + value), at + 1

    return read


def _datetime(digits: int) -> Reader:
    size = 5 + (digits + 1) // 2

    def read(data: bytes, at: int) -> tuple[str, int]:
        packed = int.from_bytes(data[at : at + 5], "big") - 0x8000000000
        day, clock = packed >> 17, packed & 0x1FFFF
        month, micros = day >> 5, _micros(data[at + 5 : at + size], digits)
        text = (
            f"{month // 13:04d}-{month % 13:02d}-{day & 31:02d}"
            f" {clock >> 12:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}"
        )
        return text + _fraction(micros, digits), at + size

    return read


def _timestamp(digits: int) -> Reader:
    size = 4 + (digits + 1) // 2

    def read(data: bytes, at: int) -> tuple[str, int]:
        seconds, micros = int.from_bytes(data[at : at + 4], "big"), _micros(data[at + 4 : at + size], digits)
        if not seconds and not micros:
            return "0000-00-00 00:00:00" + _fraction(0, digits), at + size
        moment = (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")
        return f"{moment}{_fraction(micros, digits)}+00", at + size

    return read


def _time(digits: int) -> Reader:
    more = (digits + 1) // 2
    size, unit = 3 + more, 256**more

    def read(data: bytes, at: int) -> tuple[str, int]:
        # One number with a sign: the seconds' fields, and the fraction behind them.
        packed = int.from_bytes(data[at : at + size], "big") - 0x800000 * unit
        clock, fraction = divmod(abs(packed), unit)
        micros = fraction * _UNITS[more]
        text = f"{clock >> 12 & 1023:02d}:{clock >> 6 & 63:02d}:{clock & 63:02d}{_fraction(micros, digits)}"
        return f"-{text}" if packed < 0 else text, at + size

    return read


_TEMPORAL: Final[dict[Type, Callable[[int], Reader]]] = {
    Type.DATE: _date,
    Type.NEWDATE: _date,
    Type.YEAR: _year,
    Type.DATETIME: _datetime,
    Type.TIMESTAMP: _timestamp,
    Type.TIME: _time,
}


def _micros(data: bytes, digits: int) -> int:
    return int.from_bytes(data, "big") * _UNITS[(digits + 1) // 2]


def _fraction(micros: int, digits: int) -> str:
    return f".{micros:06d}"[: digits + 1] if digits else ""


def _unpacked(form: str, data: bytes, at: int) -> tuple[float]:
    try:
        found: tuple[float] = struct.unpack_from(form, data, at)
    except struct.error:
        raise SourceError("binlog: a row ends too early") from None
    return found
