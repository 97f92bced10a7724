"""Puts together what the binlog and the catalogue say of a table, and tells why one cannot be read; pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kainite.capture.mysql.records import SourceTable, oid_of
from kainite.capture.mysql.table_map import BINARY, MappedColumn, TableMap, Type
from kainite.capture.mysql.values import Reader, TextOf, UncarriedError, reader_of

_FIXED: Final = 16
_UNCARRIED_TYPES: Final = frozenset({
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
    "geometrycollection", "geomcollection", "vector",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ColumnNow:
    """A column, as the catalogue has it now.

    Attributes:
        data_type: the type's name alone.
        made: whether the source computes it.
        indexed: whether an index but the primary key has it.
        compressed: whether it has the attribute COMPRESSED.
    """

    data_type: str
    made: bool = False
    indexed: bool = False
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class TableNow:
    """A table, as the catalogue has it now.

    Attributes:
        engine: its storage engine.
        transactional: whether that has transactions.
        versioned: whether the server keeps the rows' history in the table.
        columns: its columns, by their names in lower case.
        has_key: whether it has a primary key.
    """

    engine: str
    transactional: bool
    versioned: bool
    has_key: bool
    columns: Mapping[str, ColumnNow] = field(default_factory=dict)

    def problem(self) -> str:
        """Returns why the table's changes cannot be carried; an empty text where they can."""
        if not self.transactional:
            return f"its engine {self.engine} has no transactions; ALTER TABLE … ENGINE=InnoDB"
        if self.versioned:
            return "it is system-versioned: its history's rows come as changes, too"
        if not self.has_key:
            return "it has no primary key; ALTER TABLE … ADD PRIMARY KEY"
        for name, column in self.columns.items():
            if column.data_type in _UNCARRIED_TYPES or column.compressed:
                why = "the attribute COMPRESSED" if column.compressed else f"the type {column.data_type}"
                return f"its column {name} has {why}, which is not carried"
        return ""


def source_table(mapped: TableMap, now: TableNow | None, text_of: TextOf, *, with_plugins: bool) -> SourceTable:
    """Returns how a table's changes are read.

    Args:
        mapped: the table at the time of the changes.
        now: what the catalogue has of it; None where it is gone.
        text_of: turns the bytes of texts into characters.
        with_plugins: whether the server has types that the binlog calls BINARY(16), as MariaDB has.
    """
    relation = mapped.name
    if problem := "" if now is None else now.problem():
        return SourceTable(relation, problem=problem)
    if not all(column.name for column in mapped.columns):
        return SourceTable(relation, problem="the binlog had no names of columns (binlog_row_metadata was not FULL)")
    if not mapped.key:
        return SourceTable(relation, problem="it had no primary key; ALTER TABLE … ADD PRIMARY KEY helps later changes")
    columns = {} if now is None else now.columns
    facts = [columns.get(column.name.lower()) for column in mapped.columns]
    try:
        pairs = list(zip(mapped.columns, facts, strict=True))
        readers = [_reader(column, fact, text_of, with_plugins=with_plugins) for column, fact in pairs]
    except UncarriedError as error:
        return SourceTable(relation, problem=str(error))
    places = range(len(facts))
    return SourceTable(
        relation,
        tuple(column.name for column in mapped.columns),
        tuple(25 if _plugin(fact) else oid_of(column) for column, fact in pairs),
        tuple(readers),
        tuple(place for place in places if not _made(facts[place])),
        mapped.key,
        tuple(place for place in places if _indexed(facts[place]) and place not in mapped.key),
    )


def _made(fact: ColumnNow | None) -> bool:
    return fact is not None and fact.made


def _indexed(fact: ColumnNow | None) -> bool:
    return fact is not None and fact.indexed and not fact.made


def _plugin(fact: ColumnNow | None) -> bool:
    return fact is not None and fact.data_type in _PLUGINS


def _reader(column: MappedColumn, fact: ColumnNow | None, text_of: TextOf, *, with_plugins: bool) -> Reader:
    fixed = column.type == Type.STRING and column.collation == BINARY
    if fixed and fact is not None and fact.data_type in _PLUGINS:
        if column.size != _PLUGIN_SIZES[fact.data_type]:
            raise UncarriedError(
                f"column {column.name} was BINARY({column.size}) when the row changed, and has been made"
                f" {fact.data_type.upper()} since"
            )
        return _of_plugin(column.size, fact.data_type)
    if fixed and fact is None and with_plugins and column.size in (4, _FIXED):
        raise UncarriedError(
            f"column {column.name} is gone from the source since: nothing tells whether it was BINARY({column.size}),"
            " UUID or INET"
        )
    return reader_of(column, text_of)


def _of_plugin(size: int, data_type: str) -> Reader:
    spell = _PLUGINS[data_type]

    def read(data: bytes, at: int) -> tuple[str, int]:
        end = at + 1 + data[at] if at < len(data) else len(data) + 1
        return spell(data[at + 1 : end].ljust(size, b"\0")[:size]), end

    return read


def _uuid(stored: bytes) -> str:
    """Returns a UUID; MariaDB stores those of versions 1 to 5 with their time last."""
    raw = stored
    if stored[6] & 0x80 and 0 < stored[8] < 0x60:
        raw = stored[12:16] + stored[10:12] + stored[8:10] + stored[6:8] + stored[0:6]
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _address(stored: bytes) -> str:
    return str(ipaddress.ip_address(stored))


_PLUGINS: Final[Mapping[str, Callable[[bytes], str]]] = {"uuid": _uuid, "inet6": _address, "inet4": _address}
"""MariaDB's types that the binlog calls BINARY."""
_PLUGIN_SIZES: Final[Mapping[str, int]] = {"uuid": 16, "inet6": 16, "inet4": 4}
"""The bytes of their values."""
