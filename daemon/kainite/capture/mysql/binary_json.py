"""Reads a document of MySQL's type JSON as the binlog has it, and spells it as JSON text; pure.

Source: the description of the format in MySQL 8.0's ``sql-common/json_binary.h``, and what its manual says of the
conversion of JSON to text (*The JSON Data Type*). MySQL itself was not run. MariaDB's JSON is a text, and never comes
here.

===================  ==============================================================================================
document             a byte for the type, and the value
object               count and size of 2 bytes (*small*) or 4 (*large*); for each member where its key stands (2 or 4
                     bytes) and the key's length (2); for each member type (1) and where its value stands (2 or 4), or
                     the value itself where it fits; the keys; the values
array                the same without keys
text                 length in groups of 7 bits, the lowest first; UTF-8
opaque               a column's type, a length, the value: a decimal, a date, a time, or bytes
===================  ==============================================================================================

Places are counted from the object's or array's count. The server's writer has each value once; a document in which
places overlap, so that reading it would take longer than it is, is none.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from kainite.base.errors import SourceError
from kainite.capture.mysql.byte_reader import ByteReader
from kainite.capture.mysql.decimals import decimal_size, decimal_text
from kainite.capture.mysql.table_map import Type

MOST_DEPTH: Final = 100
"""How deep the server lets arrays and objects stand in each other."""


class _Kind(IntEnum):
    SMALL_OBJECT = 0
    LARGE_OBJECT = 1
    SMALL_ARRAY = 2
    LARGE_ARRAY = 3
    LITERAL = 4
    INT16 = 5
    UINT16 = 6
    INT32 = 7
    UINT32 = 8
    INT64 = 9
    UINT64 = 10
    DOUBLE = 11
    STRING = 12
    OPAQUE = 15


_NUMBERS: Final = {
    _Kind.INT16: "<h", _Kind.UINT16: "<H", _Kind.INT32: "<i", _Kind.UINT32: "<I", _Kind.INT64: "<q",
    _Kind.UINT64: "<Q", _Kind.DOUBLE: "<d",
}  # fmt: skip
_LITERALS: Final = ("null", "true", "false")
_LARGE: Final = frozenset({_Kind.LARGE_OBJECT, _Kind.LARGE_ARRAY})
_INLINED: Final = frozenset({_Kind.LITERAL, _Kind.INT16, _Kind.UINT16})
_INLINED_IN_LARGE: Final = _INLINED | {_Kind.INT32, _Kind.UINT32}
_MOST_LENGTH_BYTES: Final = 5
_MOST_DIGITS: Final = 65


def json_text(data: bytes) -> str:
    """Returns a document as the server spells it: ``{"a": [1, "b"]}``; ``null`` for one without a byte.

    Raises:
        SourceError: the bytes are no document.
    """
    if not data:
        return "null"  # what IGNORE puts in the place of a value that is missing
    return "".join(_Document(data).value(data[0], 1, 0))


class _Document:
    """One document.

    Attributes:
        data: its bytes.
        left: how many of them may still be read, all values together.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.left = len(data)

    def value(self, kind: int, at: int, depth: int) -> Iterator[str]:
        """Yields the text of the value at a place, in pieces."""
        if kind in (_Kind.SMALL_OBJECT, _Kind.LARGE_OBJECT, _Kind.SMALL_ARRAY, _Kind.LARGE_ARRAY):
            if depth >= MOST_DEPTH:
                raise SourceError(f"binlog: a JSON document that is more than {MOST_DEPTH} levels deep")
            yield from self._container(_Kind(kind), at, depth)
        else:
            yield self._scalar(kind, at)

    def _container(self, kind: _Kind, begin: int, depth: int) -> Iterator[str]:
        width = 4 if kind in _LARGE else 2
        is_object = kind in (_Kind.SMALL_OBJECT, _Kind.LARGE_OBJECT)
        count, size = (int.from_bytes(self._take(begin + n * width, width), "little") for n in range(2))
        if begin + size > len(self.data):
            raise SourceError("binlog: a JSON document that ends too early")
        keys = begin + 2 * width
        values = keys + (count * (width + 2) if is_object else 0)
        opening, closing = "{}" if is_object else "[]"
        yield opening
        for place in range(count):
            yield ", " if place else ""
            if is_object:
                yield self._key(begin, keys + place * (width + 2), width) + ": "
            entry = values + place * (1 + width)
            [inner] = self._take(entry, 1)
            if inner in (_INLINED_IN_LARGE if width == 4 else _INLINED):
                yield self._scalar(inner, entry + 1)
            else:
                where = int.from_bytes(self._take(entry + 1, width), "little")
                yield from self.value(inner, begin + where, depth + 1)
        yield closing

    def _key(self, begin: int, entry: int, width: int) -> str:
        where = int.from_bytes(self._take(entry, width), "little")
        length = int.from_bytes(self._take(entry + width, 2), "little")
        return _quoted(self._take(begin + where, length))

    def _scalar(self, kind: int, at: int) -> str:
        match kind:
            case _Kind.LITERAL:
                [which] = self._take(at, 1)
                if which >= len(_LITERALS):
                    raise SourceError(f"binlog: a JSON literal {which}, which is not known")
                return _LITERALS[which]
            case _Kind.STRING:
                return _quoted(self._counted(at))
            case _Kind.OPAQUE:
                [column] = self._take(at, 1)
                return _opaque(column, self._counted(at + 1))
        if kind not in _NUMBERS:
            raise SourceError(f"binlog: a JSON value of the type {kind}, which is not known")
        return self._number(_Kind(kind), at)

    def _number(self, kind: _Kind, at: int) -> str:
        form = struct.Struct(_NUMBERS[kind])
        (number,) = form.unpack(self._take(at, form.size))
        if isinstance(number, float) and not math.isfinite(number):
            raise SourceError("binlog: a JSON number that is none")
        return repr(number)

    def _counted(self, at: int) -> bytes:
        """Returns bytes behind their length."""
        length = 0
        for place in range(_MOST_LENGTH_BYTES):
            [byte] = self._take(at + place, 1)
            length |= (byte & 0x7F) << 7 * place
            if not byte & 0x80:
                return self._take(at + place + 1, length)
        raise SourceError("binlog: a length in a JSON document that is none")

    def _take(self, at: int, size: int) -> bytes:
        found = ByteReader(self.data, min(at, len(self.data))).take(size)
        self.left -= size
        if self.left < 0:
            raise SourceError("binlog: a JSON document whose values overlap")
        return found


def _quoted(text: bytes) -> str:
    try:
        return json.dumps(text.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        raise SourceError("binlog: a text in a JSON document that is no UTF-8") from None


def _opaque(column: int, data: bytes) -> str:
    """Returns a value of one of the server's own types as it spells it in JSON."""
    if column == Type.DECIMAL:
        if len(data) < 2 or not data[1] <= data[0] <= _MOST_DIGITS or len(data) != 2 + decimal_size(*data[:2]):
            raise SourceError("binlog: a decimal in a JSON document that is none")
        return decimal_text(data[2:], data[0], data[1])
    if column in _MOMENTS:
        if len(data) != 8:
            raise SourceError("binlog: a moment in a JSON document that is none")
        return f'"{_moment(column, int.from_bytes(data, "little", signed=True))}"'
    return f'"base64:type{column}:{base64.b64encode(data).decode()}"'


_MOMENTS: Final = frozenset({Type.DATE, Type.OLD_TIME, Type.OLD_DATETIME, Type.OLD_TIMESTAMP})
"""The types of moments, by the numbers that they have outside of tables."""


def _moment(column: int, packed: int) -> str:
    whole, micros = divmod(abs(packed), 1 << 24)
    clock = f"{whole >> 6 & 63:02d}:{whole & 63:02d}.{micros:06d}"
    if column == Type.OLD_TIME:
        return f"{'-' if packed < 0 else ''}{whole >> 12 & 1023:02d}:{clock}"
    days = whole >> 17
    months = days >> 5
    day = f"{months // 13:04d}-{months % 13:02d}-{days & 31:02d}"
    return day if column == Type.DATE else f"{day} {whole >> 12 & 31:02d}:{clock}"
