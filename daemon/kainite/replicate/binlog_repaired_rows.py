"""Makes deltas that set rows of the target to what a MariaDB source has, under a snapshot of the source.

What a row of the source becomes is said in :mod:`~kainite.replicate.repaired_rows`; its values are those that the
stream would bring. A row is known by the texts of its key as both sides spell them
(:mod:`~kainite.replicate.canonical_texts`). No SQL of MariaDB finds a row by such a text: it has collations, and other
spellings. So the source is asked for more rows, by a condition that surely has the wanted ones, and each row's key is
spelled and compared here. Where there is no such condition, all rows of the table are read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import pymysql

from kainite.base.errors import LogRequestError, SourceError
from kainite.base.redaction import redacted
from kainite.capture.mysql.snapshot_session import SnapshotGoneError, SnapshotSession
from kainite.capture.mysql.snapshot_tables import SnapshotColumn, backticked
from kainite.processors.postgresql_texts import as_json, conversions
from kainite.replicate.canonical_texts import TextKind
from kainite.replicate.mariadb_plan import mariadb_types
from kainite.replicate.paired_rows import KeyRange, MariadbRows, PairedRows, RowTexts
from kainite.replicate.repaired_rows import in_order
from kainite.replicate.verify_report import RowReport
from kainite.uow.delta import Delta, Operation

KEYS_AT_ONCE: Final = 200
"""Keys that one query asks for."""

_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_TEXTS: Final = frozenset({"char", "varchar"})
_BYTES: Final = frozenset({"binary", "varbinary"})
_MOMENTS: Final = frozenset({"date", "datetime", "timestamp"})
_MOST_DIGITS: Final = 65  # of a DECIMAL
_INTEGER: Final = re.compile(r"-?\d+", re.ASCII)
_DECIMAL: Final = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_MOMENT: Final = re.compile(r"([1-9]\d{3}-\d\d-\d\d(?: \d\d:\d\d:\d\d(?:\.\d{1,6})?)?)(?:\+00)?", re.ASCII)
_HEX: Final = re.compile(r"\\x((?:[0-9a-f]{2})*)", re.ASCII)


def read_binlog_deltas(
    session: SnapshotSession, tables: Mapping[str, PairedRows], rows: Sequence[RowReport]
) -> tuple[Delta, ...]:
    """Returns the deltas of rows, as the source has these rows in a snapshot.

    Args:
        session: has the snapshot.
        tables: the rows' tables, by name.
        rows: the rows.

    Raises:
        SourceError: the source does not answer, or the snapshot is gone.
        LogRequestError: nothing tells which row of the source a row of the target is.
    """
    found: list[Delta] = []
    for name in dict.fromkeys(row.table for row in rows):
        table = tables[name]
        _check_key(table)
        wanted = {tuple(row.key[column] for column in table.key_columns): row for row in rows if row.table == name}
        present = _present(session, table, wanted)
        types = mariadb_types(_source(table).table)
        found += [_delta(table, row, present.get(key), types) for key, row in wanted.items()]
    return in_order(found)


def _check_key(table: PairedRows) -> None:
    """Refuses a key whose text, as both sides spell it, is no text that the target reads."""
    kinds = dict(zip(table.columns, table.kinds, strict=True))
    if found := [column for column in table.key_columns if kinds[column] is TextKind.DOCUMENT]:
        raise LogRequestError(f"{table.name}: rows whose key has a document ({', '.join(found)}) are not repaired")


def _delta(table: PairedRows, row: RowReport, present: RowTexts | None, types: Mapping[str, int]) -> Delta:
    if present is None:
        return Delta(table.name, Operation.DELETE, dict(row.key), {}, {}, may_miss=True)
    new = as_json(dict(zip(table.columns, present, strict=True)), conversions(types))
    return Delta(table.name, Operation.UPSERT, {name: new[name] for name in table.key_columns}, new, {})


def _present(
    session: SnapshotSession, table: PairedRows, wanted: Collection[tuple[str, ...]]
) -> dict[tuple[str | None, ...], RowTexts]:
    """Returns the texts of those rows that the source has, by the texts of their keys as both sides spell them."""
    canonical, places = table.canonical(), [table.columns.index(name) for name in table.key_columns]
    found: dict[tuple[str | None, ...], RowTexts] = {}
    for condition in _conditions(table, wanted):
        for texts in _rows(session, table, condition):
            row = canonical(texts)
            key = tuple(row[place] for place in places)
            if key not in wanted:
                continue
            if list(found.setdefault(key, texts)) != list(texts):
                raise LogRequestError(
                    f"{table.name}: several rows of the source have the key {', '.join(map(str, key))}"
                )
    return found


def _rows(session: SnapshotSession, table: PairedRows, condition: str) -> Iterator[RowTexts]:
    try:
        rows = KeyRange(table.name, condition)
        source = _source(table)
        yield from session.rows(source.query(table.columns, rows), source.spellings(table.columns))
    except (SnapshotGoneError, pymysql.Error, OSError) as error:
        cause = redacted(" ".join(str(error.args[-1] if error.args else error).split()))
        raise SourceError(f"the source: {cause}; start the repair again") from None


def _source(table: PairedRows) -> MariadbRows:
    assert isinstance(table.source, MariadbRows), "the source is MariaDB"
    return table.source


def _conditions(table: PairedRows, wanted: Collection[tuple[str, ...]]) -> Iterator[str]:
    """Yields conditions that together have each wanted row, and perhaps others."""
    of_keys = [_of_key(table, key) for key in wanted]
    known = [one for one in of_keys if one is not None]
    if len(known) < len(of_keys):
        yield "TRUE"
        return
    for first in range(0, len(known), KEYS_AT_ONCE):
        yield " OR ".join(f"({one})" for one in known[first : first + KEYS_AT_ONCE])


def _of_key(table: PairedRows, key: Sequence[str]) -> str | None:
    """Returns a condition on the first columns of a key; None where nothing is sure of the first one."""
    columns = {
        column.name: (column, kind) for column, kind in zip(_source(table).table.copied, table.kinds, strict=True)
    }
    found = []
    for name, text in zip(table.key_columns, key, strict=True):
        column, kind = columns[name]
        literal = key_literal(column, kind, text)
        if literal is None:
            break
        found.append(f"{backticked(name)} = {literal}")
    return " AND ".join(found) or None


def key_literal(column: SnapshotColumn, kind: TextKind, text: str) -> str | None:
    """Returns SQL that surely equals each value of a column which has this text; None where none is known.

    Args:
        column: the source's column.
        kind: how its texts are brought to one.
        text: the text as both sides spell it.
    """
    data_type = column.data_type
    if data_type in _INTEGERS:
        return text if _INTEGER.fullmatch(text) and len(text) < _MOST_DIGITS else None
    if data_type == "decimal":
        return text if _DECIMAL.fullmatch(text) and len(text) < _MOST_DIGITS else None
    if data_type in _MOMENTS and (moment := _MOMENT.fullmatch(text)):
        return f"'{moment[1]}'"
    if data_type in _TEXTS and kind is TextKind.AS_IT_IS and (column.charset == "utf8mb4" or text.isascii()):
        return f"_utf8mb4 X'{text.encode().hex()}'"
    if data_type in _BYTES and kind in (TextKind.AS_IT_IS, TextKind.BYTES) and (data := _HEX.fullmatch(text)):
        return f"X'{data[1]}'"
    return None
