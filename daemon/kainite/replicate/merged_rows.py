"""Finds rows of the source that a MariaDB target cannot hold beside one another: it takes their keys for one.

Its collations take texts for equal that a source tells apart: in case, in accents, in spaces at the end. The server
refuses the apply job's insert of the second such row. A repair sets rows by upserts, and an upsert would find the first
row in the place of the second, and write over it. So a repair leaves such rows alone, and names them.

The target is asked, so that each collation counts as the server has it. Only rows that the target lacks are looked for:
a row that it has under its very key is the one that is found there. A row whose key is that of one which the repair
deletes is no such row: deletes come first.

What another session inserts behind the question is not seen. The comparison that follows a repair finds it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from kainite.capture.mysql.snapshot_session import SnapshotSession
from kainite.capture.mysql.snapshot_tables import SnapshotColumn, backticked
from kainite.replicate.binlog_repaired_rows import key_literal
from kainite.replicate.paired_rows import MariadbRows, PairedRows
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.verify_report import RowReport
from kainite.targets.mariadb.rows import as_target_error

_EXACT: Final = "_nopad_bin"
"""How collations end that take no two texts for one."""


@dataclass(frozen=True, slots=True)
class MergedRow:
    """A row that is not repaired.

    Attributes:
        table: its table.
        key: the texts of its key.
        other: those of another row of the source, whose key is the same one to the target.
    """

    table: str
    key: Mapping[str, str]
    other: Mapping[str, str]

    @property
    def sentence(self) -> str:
        """Returns what stands in the way, and what mends it."""
        return (
            f"not repaired: {self.table} {dict(self.key)}: to the target it is the row {dict(self.other)}; give the"
            " key's column a collation that ends with _nopad_bin, and load anew (kainite replicate reload)"
        )


def merged_rows(url: str, pairs: Mapping[str, PairedRows], rows: Sequence[RowReport]) -> tuple[MergedRow, ...]:
    """Returns the rows that the target takes for others of the source.

    Args:
        url: the target.
        pairs: the compared tables, by name; those of which the target is no MariaDB are passed over.
        rows: the rows that are to be repaired.

    Raises:
        TargetUnavailableError: the target does not answer.
    """
    names = {row.table for row in rows if row.how is RowDifference.MISSING}
    tables = [table for name, table in pairs.items() if name in names and _merging(table)]
    if not tables:
        return ()
    with as_target_error(), closing(SnapshotSession(url, as_target_error)) as session:
        return tuple(
            found
            for table in tables
            for found in _merged(session, table, [row for row in rows if row.table == table.name])
        )


def _merged(session: SnapshotSession, table: PairedRows, rows: Sequence[RowReport]) -> Iterator[MergedRow]:
    missing = [row.key for row in rows if row.how is RowDifference.MISSING]
    deleted = [row.key for row in rows if row.how is RowDifference.EXTRA]
    together = _equal_to_one_another(session, table, missing)
    for place, key in enumerate(missing):
        others = [*together.get(place, ()), *_present(session, table, key)]
        if other := next((one for one in others if one != key and one not in deleted), None):
            yield MergedRow(table.name, key, other)


def _equal_to_one_another(
    session: SnapshotSession, table: PairedRows, keys: Sequence[Mapping[str, str]]
) -> Mapping[int, Sequence[Mapping[str, str]]]:
    """Returns, for the places of keys that are one with others of them, these others."""
    columns = list(_columns(table).values())
    rows = " UNION ALL ".join(
        f"SELECT {place} AS n, " + ", ".join(f"{_grouped(one, key)} AS k{at}" for at, one in enumerate(columns))
        for place, key in enumerate(keys)
    )
    by = ", ".join(f"k{at}" for at in range(len(columns)))
    groups: dict[str, list[int]] = {}
    for place, first in session.found(f"SELECT n, MIN(n) OVER (PARTITION BY {by}) FROM ({rows}) AS t"):
        groups.setdefault(first, []).append(int(place))
    return {place: [keys[one] for one in group if one != place] for group in groups.values() for place in group}


def _present(session: SnapshotSession, table: PairedRows, key: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Yields the keys of the target's rows that are one with a key."""
    target = _target(table)
    kinds = dict(zip(table.columns, table.kinds, strict=True))
    literals = {
        name: _text(column, key[name]) if _merges(column) else key_literal(column, kinds[name], key[name])
        for name, column in _columns(table).items()
    }
    where = " AND ".join(f"{backticked(name)} = {text}" for name, text in literals.items() if text is not None)
    query = target.table.query(where, list(_columns(table).values()))
    for texts in session.rows(query, target.spellings(table.key_columns)):
        found = _canonical(table, texts)
        if all(found[name] == key[name] or _merges(column) for name, column in _columns(table).items()):
            yield found


def _canonical(table: PairedRows, key: Sequence[str | None]) -> dict[str, str]:
    """Returns a key's texts as both sides spell them."""
    texts = dict(zip(table.key_columns, key, strict=True))
    row = table.canonical()([texts.get(name) for name in table.columns])
    return {name: row[table.columns.index(name)] or "" for name in table.key_columns}


def _grouped(column: SnapshotColumn, key: Mapping[str, str]) -> str:
    """Returns a value of a key as SQL by which the server groups what it takes for one."""
    text = key[column.name]
    return _text(column, text) if _merges(column) else f"X'{text.encode().hex()}'"


def _text(column: SnapshotColumn, text: str) -> str:
    return f"CONVERT(_utf8mb4 X'{text.encode().hex()}' USING {column.charset}) COLLATE {column.collation}"


def _merging(table: PairedRows) -> bool:
    return isinstance(table.target, MariadbRows) and any(map(_merges, _columns(table).values()))


def _merges(column: SnapshotColumn) -> bool:
    return bool(column.collation) and not column.collation.endswith(_EXACT)


def _columns(table: PairedRows) -> dict[str, SnapshotColumn]:
    """Returns the target's columns of the key, by name, in the key's order."""
    named = {column.name: column for column in _target(table).table.columns}
    return {name: named[name] for name in table.key_columns}


def _target(table: PairedRows) -> MariadbRows:
    assert isinstance(table.target, MariadbRows), "the target is MariaDB"
    return table.target
