"""Decodes the description of a table that stands in the binlog before its rows; no I/O.

With ``binlog_row_metadata = FULL`` it names the columns, their signs, character sets and members, and the primary key,
all of the time of the change. So a change is read right whatever has been altered since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, TypeVar

from kainite.base.errors import SourceError
from kainite.capture.mysql.byte_reader import ByteReader

BINARY: Final = 63
"""The collation of bytes that are no text."""


class Type(IntEnum):
    """The types of columns, as the binlog numbers them."""

    TINY = 1
    SHORT = 2
    LONG = 3
    FLOAT = 4
    DOUBLE = 5
    OLD_TIMESTAMP = 7
    LONGLONG = 8
    INT24 = 9
    DATE = 10
    OLD_TIME = 11
    OLD_DATETIME = 12
    YEAR = 13
    NEWDATE = 14
    VARCHAR = 15
    BIT = 16
    TIMESTAMP = 17
    DATETIME = 18
    TIME = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    VECTOR = 242
    JSON = 245
    DECIMAL = 246
    ENUM = 247
    SET = 248
    BLOB = 252
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


_METADATA: Final = {
    Type.FLOAT: 1, Type.DOUBLE: 1, Type.TIMESTAMP: 1, Type.DATETIME: 1, Type.TIME: 1, Type.BLOB: 1, Type.JSON: 1,
    Type.GEOMETRY: 1, Type.VECTOR: 1, Type.BLOB_COMPRESSED: 1, Type.VARCHAR: 2, Type.BIT: 2, Type.DECIMAL: 2,
    Type.STRING: 2, Type.VAR_STRING: 2, Type.ENUM: 2, Type.SET: 2, Type.VARCHAR_COMPRESSED: 2,
}  # fmt: skip
"""Bytes that say more about a column, by type."""
_KNOWN: Final = frozenset(map(int, Type))
_NUMBERS: Final = {
    Type.TINY, Type.SHORT, Type.INT24, Type.LONG, Type.LONGLONG, Type.FLOAT, Type.DOUBLE, Type.DECIMAL, Type.YEAR,
}  # fmt: skip
_TEXTS: Final = {Type.STRING, Type.VAR_STRING, Type.VARCHAR, Type.BLOB, Type.BLOB_COMPRESSED, Type.VARCHAR_COMPRESSED}

# The kinds of metadata.
_SIGNS, _COLLATIONS, _EACH_COLLATION, _NAMES, _SETS, _ENUMS = range(1, 7)
_KEY, _KEY_OF_PREFIXES, _MEMBERS_COLLATIONS, _EACH_MEMBERS_COLLATION = range(8, 12)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column.

    Attributes:
        type: its type; ENUM and SET for these, which the binlog calls strings.
        size: more about it: the most bytes of a text, those of a length, the digits of a fraction.
        scale: digits behind the point of a decimal.
        name: its name; empty without full metadata.
        unsigned: whether a number has no sign.
        collation: the number of a text's collation, or of the members'; BINARY for bytes.
        members: those of an ENUM or a SET, in the collation's character set.
    """

    type: int
    size: int = 0
    scale: int = 0
    name: str = ""
    unsigned: bool = False
    collation: int = BINARY
    members: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class TableMap:
    """A table at the time of a change.

    Attributes:
        table_id: by which the rows' events name it.
        schema: its database.
        columns: all its columns that the binlog has.
        key: the places of the primary key's columns; empty without a primary key.
    """

    table_id: int
    schema: str
    name: str
    columns: tuple[MappedColumn, ...]
    key: tuple[int, ...] = ()


def table_id_of(body: bytes) -> int:
    """Returns the number of the table that an event of a table or of rows is about."""
    return ByteReader(body).number(6)


def table_names(body: bytes) -> tuple[str, str]:
    """Returns the database and the name alone."""
    reader = ByteReader(body, 8)
    schema = reader.take(reader.number(1) + 1)[:-1]
    return schema.decode("utf-8", "replace"), reader.take(reader.number(1) + 1)[:-1].decode("utf-8", "replace")


def decode_table_map(body: bytes) -> TableMap:
    """Decodes a table's description.

    Raises:
        SourceError: the bytes are none, or have a type that is not known.
    """
    table_id, (schema, name) = table_id_of(body), table_names(body)
    reader = ByteReader(body, 8)
    reader.take(reader.number(1) + 1)
    reader.take(reader.number(1) + 1)
    types = reader.text()
    more = ByteReader(reader.text())
    columns = [_column(kind, more) for kind in types]
    reader.take((len(columns) + 7) // 8)
    return _described(TableMap(table_id, schema, name, tuple(columns)), reader)


def _column(kind: int, more: ByteReader) -> MappedColumn:
    if kind not in _KNOWN:
        raise SourceError(f"binlog: a column of the type {kind}, which is not known")
    told = more.take(_METADATA.get(Type(kind), 0))
    match kind:
        case Type.STRING | Type.ENUM | Type.SET:
            real, length = told[0], told[1]
            if real & 0x30 != 0x30:  # lengths beyond 255 take bits of the type
                real, length = real | 0x30, length | ((real & 0x30) ^ 0x30) << 4
            return MappedColumn(real if real in (Type.ENUM, Type.SET) else kind, length)
        case Type.BIT:
            return MappedColumn(kind, told[1] * 8 + told[0])
        case Type.DECIMAL:
            return MappedColumn(kind, told[0], told[1])
    return MappedColumn(kind, int.from_bytes(told, "little"))


def _described(table: TableMap, reader: ByteReader) -> TableMap:
    """Adds what the metadata says."""
    columns = list(table.columns)
    key: tuple[int, ...] = ()
    while reader.left:
        what, value = reader.number(1), ByteReader(reader.text())
        if what == _KEY:
            key = tuple(_all(value, ByteReader.packed))
        elif what == _KEY_OF_PREFIXES:
            key = tuple(place for place, _ in _all(value, lambda pair: (pair.packed(), pair.packed())))
        else:
            _describe(columns, what, value)
    if any(place >= len(columns) for place in key):
        raise SourceError(f"binlog: the primary key of {table.name} has a column that is none")
    return replace(table, columns=tuple(columns), key=key)


def _describe(columns: list[MappedColumn], what: int, value: ByteReader) -> None:
    texts = [place for place, column in enumerate(columns) if column.type in _TEXTS]
    chosen = [place for place, column in enumerate(columns) if column.type in (Type.ENUM, Type.SET)]
    if what == _SIGNS:
        _set_signs(columns, value)
    elif what == _COLLATIONS:
        _set_collations(columns, texts, value)
    elif what == _MEMBERS_COLLATIONS:
        _set_collations(columns, chosen, value)
    elif what in (_EACH_COLLATION, _EACH_MEMBERS_COLLATION):
        for place in texts if what == _EACH_COLLATION else chosen:
            columns[place] = replace(columns[place], collation=value.packed())
    elif what == _NAMES:
        for place, column in enumerate(columns):
            columns[place] = replace(column, name=value.text().decode("utf-8", "replace"))
    elif what in (_SETS, _ENUMS):
        for place in chosen:
            if columns[place].type == (Type.SET if what == _SETS else Type.ENUM):
                members = tuple(value.text() for _ in range(value.packed()))
                columns[place] = replace(columns[place], members=members)


def _set_signs(columns: list[MappedColumn], value: ByteReader) -> None:
    numbers = [place for place, column in enumerate(columns) if column.type in _NUMBERS]
    bits = value.take((len(numbers) + 7) // 8)
    for index, place in enumerate(numbers):
        unsigned = bool(bits[index // 8] & 0x80 >> index % 8)
        columns[place] = replace(columns[place], unsigned=unsigned)


def _set_collations(columns: list[MappedColumn], places: Sequence[int], value: ByteReader) -> None:
    """Gives columns the most frequent collation, and some of them another."""
    usual = value.packed()
    others = dict(_all(value, lambda pair: (pair.packed(), pair.packed())))
    for index, place in enumerate(places):
        columns[place] = replace(columns[place], collation=others.get(index, usual))


def _all(value: ByteReader, read: Callable[[ByteReader], T]) -> Iterator[T]:
    while value.left:
        yield read(value)
