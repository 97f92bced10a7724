"""Tells of which columns of MariaDB a type of PostgreSQL may not take all values, or may change them. Pure.

What does not fit is refused, row by row, by the load and by the apply job alike; a check before says it in time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from kainite.capture.mysql.snapshot_tables import SnapshotColumn
from kainite.replicate.binlog_plan import PairedTable

_BITS: Final[Mapping[str, int]] = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64, "year": 12}
_TAKES: Final[Mapping[str, int]] = {"smallint": 16, "integer": 32, "bigint": 64}
_DECIMAL: Final = re.compile(r"(?:decimal|numeric)\((\d+)(?:,(\d+))?\)")
_LENGTH: Final = re.compile(r"\((\d+)\)")
_TEXTS: Final = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set")
_BYTES: Final = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_OTHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "float": ("real", "double precision"), "double": ("double precision",), "date": ("date",),
    "datetime": ("timestamp",), "timestamp": ("timestamp with time zone", "timestamptz"), "time": ("interval",),
    "bit": ("bit",), "uuid": ("uuid",), "inet4": ("inet",), "inet6": ("inet",),
}  # fmt: skip
_DATES: Final = ("date", "datetime", "timestamp")


def dates_of(pair: PairedTable) -> list[str]:
    """Returns the columns that may hold dates without a day (``0000-00-00``), which PostgreSQL refuses."""
    return [f"{'.'.join(pair.place)}.{one.name}" for one in pair.source.copied if one.data_type in _DATES]


def doubts_of(pair: PairedTable) -> Iterator[str]:
    """Yields which columns of the target may not take, or may change, values of the source's."""
    for column in pair.source.copied:
        found = pair.target.columns.get(column.name)
        if found is not None and not _fits(column, found.type.lower()):
            name = f"{'.'.join(pair.place)}.{column.name}"
            yield (
                f"{name} is {column.column_type} in the source and {found.type} in the target: values that do not fit"
                " are refused, others may be rounded or cut"
            )


def _fits(column: SnapshotColumn, target: str) -> bool:
    kind = column.data_type
    if target.split("(")[0] in ("text", "character varying", "varchar") and not _LENGTH.search(target):
        return kind not in _BYTES
    if kind in _BITS:
        return _takes_integer(_BITS[kind], target, unsigned="unsigned" in column.column_type, kind=column.column_type)
    if kind == "decimal":
        return _takes_decimal(column.column_type, target)
    if kind in _TEXTS:
        return _takes_text(column, target)
    if kind in _BYTES:
        return target == "bytea"
    if kind == "bit":
        return target in (column.column_type, "bit varying")
    return target.startswith(_OTHERS.get(kind, ("?",))) and not (kind == "datetime" and "with time zone" in target)


def _takes_integer(bits: int, target: str, *, unsigned: bool, kind: str) -> bool:
    if target == "boolean":
        return kind.startswith("tinyint(1)")
    found = _DECIMAL.match(target)
    if target == "numeric" or found:
        room = 0 if found is None else int(found[1]) - int(found[2] or 0)
        return found is None or room >= len(str(2**bits))
    return _TAKES.get(target, 0) >= bits + (1 if unsigned else 0)


def _takes_decimal(source: str, target: str) -> bool:
    here, there = _DECIMAL.match(source), _DECIMAL.match(target)
    if here is None or there is None:
        return target == "numeric"
    scale, other = int(here[2] or 0), int(there[2] or 0)
    return other >= scale and int(there[1]) - other >= int(here[1]) - scale


def _takes_text(column: SnapshotColumn, target: str) -> bool:
    if target in ("json", "jsonb"):
        return column.data_type == "longtext"
    here, there = _LENGTH.search(column.column_type), _LENGTH.search(target)
    if not target.startswith(("character varying", "varchar")) or there is None:
        return False
    return here is not None and column.data_type in ("char", "varchar") and int(there[1]) >= int(here[1])
