"""Says which type of MariaDB takes the values of a type of PostgreSQL, and writes tables with such types. Pure.

A type is here only if each of its values has one equal value there, or is refused: nothing is rounded or cut in
silence. Where no type does that (``numeric`` without digits, arrays, intervals, types of the user's own), the choice is
the user's. What is refused, row by row, by load and apply job alike: NaN and infinities, dates before the year 1000 and
behind 9999, zero bytes, texts that are longer than a key's column.

Texts get the collation ``utf8mb4_nopad_bin``: texts that PostgreSQL tells apart are two there, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kainite.capture.mysql.snapshot_tables import backticked
from kainite.replicate.tables import ReplicaColumn, TableName

COLLATION: Final = "utf8mb4_nopad_bin"
KEY_CHARACTERS: Final = 255
"""Characters, or bytes, of a column without a length that is part of a key: InnoDB's keys have 3,072 bytes."""

_NAMED: Final = re.compile(r"([a-z ]+?)(?:\((\d+)(?:,(\d+))?\))?( with(?:out)? time zone)?")
_SAME: Final[Mapping[str, str]] = {
    "smallint": "SMALLINT", "integer": "INT", "bigint": "BIGINT", "oid": "INT UNSIGNED", "boolean": "BOOLEAN",
    "real": "FLOAT", "double precision": "DOUBLE", "date": "DATE", "json": "JSON", "jsonb": "JSON", "uuid": "UUID",
}  # fmt: skip
_TIMES: Final[Mapping[str, str]] = {
    "timestamp without time zone": "DATETIME", "timestamp with time zone": "DATETIME", "time without time zone": "TIME",
}  # fmt: skip
_MOST_DIGITS: Final = 65
_MOST_SCALE: Final = 38
_MOST_CHARACTERS: Final = 2000
_MOST_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class WrittenTable:
    """A table that is to be made in MariaDB.

    Attributes:
        sql: the statement; ``…`` stands for a type that the user chooses.
        open: columns whose type the user chooses, as ``name (type of the source)``.
        short: columns of keys that take texts or bytes up to a length alone.
    """

    sql: str
    open: tuple[str, ...]
    short: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceForeignKey:
    """A foreign key of a PostgreSQL source.

    Attributes:
        name: its name.
        columns: the child's columns.
        parent: the parent's schema and name.
        parent_columns: the parent's columns.
        actions: what follows in SQL: ``ON DELETE …``; empty for none.
    """

    name: str
    columns: tuple[str, ...]
    parent: TableName
    parent_columns: tuple[str, ...]
    actions: str = ""


def mariadb_type(kind: str, *, keyed: bool) -> str | None:
    """Returns the type of a column of MariaDB; None where the user has to choose.

    Args:
        kind: the type in PostgreSQL, as ``format_type`` spells it.
        keyed: whether the column is part of a key.
    """
    found = _NAMED.fullmatch(kind)
    if found is None:
        return None
    name, first, second = found[1] + (found[4] or ""), found[2], found[3]
    if name in _SAME:
        return _SAME[name]
    if name in _TIMES:
        return f"{_TIMES[name]}({first or 6})"
    return _sized(name, int(first or 0), int(second or 0), keyed=keyed)


def _sized(name: str, size: int, scale: int, *, keyed: bool) -> str | None:
    most = KEY_CHARACTERS * 3 if keyed else _MOST_CHARACTERS
    match name:
        case "numeric" if 0 < size <= _MOST_DIGITS and scale <= min(size, _MOST_SCALE):
            return f"DECIMAL({size},{scale})"
        case "character" | "bpchar" if 0 < size <= KEY_CHARACTERS:
            return f"CHAR({size}) COLLATE {COLLATION}"
        case "character varying" if 0 < size <= most:
            return f"VARCHAR({size}) COLLATE {COLLATION}"
        case "text" | "character varying" | "name":
            return f"VARCHAR({KEY_CHARACTERS}) COLLATE {COLLATION}" if keyed else f"LONGTEXT COLLATE {COLLATION}"
        case "bytea":
            return f"VARBINARY({KEY_CHARACTERS})" if keyed else "LONGBLOB"
        case "bit" if size <= _MOST_BITS:
            return f"BIT({max(size, 1)})"
    return None


def written_table(
    place: TableName,
    columns: Sequence[ReplicaColumn],
    key: Sequence[str],
    unique: Sequence[Sequence[str]] = (),
    foreign_keys: Sequence[SourceForeignKey] = (),
) -> WrittenTable:
    """Returns the statement that makes a table of PostgreSQL in MariaDB.

    Args:
        place: the table's schema and name.
        columns: its columns that are copied.
        key: the primary key's columns.
        unique: the columns of each further unique key.
        foreign_keys: its foreign keys whose parents are copied, too.
    """
    keyed = {name for one in (key, *unique, *(one.columns for one in foreign_keys)) for name in one}
    keyed |= {name for one in foreign_keys if one.parent == place for name in one.parent_columns}
    types = {column.name: mariadb_type(column.type, keyed=column.name in keyed) for column in columns}
    lines = [
        f"{backticked(column.name)} {types[column.name] or '…'}{' NOT NULL' if column.not_null else ' NULL'}"
        for column in columns
    ]
    lines += [f"PRIMARY KEY ({_names(key)})"] if key else []
    lines += [f"UNIQUE KEY ({_names(one)})" for one in unique]
    lines += [_foreign_key(one) for one in foreign_keys]
    kinds = {column.name: column.type for column in columns}
    return WrittenTable(
        f"CREATE TABLE {'.'.join(map(backticked, place))} ({', '.join(lines)})"
        f" ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE {COLLATION}",
        tuple(f"{name} ({kinds[name]})" for name, found in types.items() if found is None),
        tuple(f"{name} ({found.split()[0]})" for name, found in types.items()
              if found is not None and name in keyed and f"({KEY_CHARACTERS})" in found),
    )  # fmt: skip


def _foreign_key(key: SourceForeignKey) -> str:
    parent = ".".join(map(backticked, key.parent))
    told = f"CONSTRAINT {backticked(key.name)} FOREIGN KEY ({_names(key.columns)})"
    return f"{told} REFERENCES {parent} ({_names(key.parent_columns)}){' ' if key.actions else ''}{key.actions}"


def _names(columns: Sequence[str]) -> str:
    return ", ".join(map(backticked, columns))
