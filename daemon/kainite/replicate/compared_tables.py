"""Says in SQL how rows of a source and of its target are compared: by hashes over one canonical text. Pure.

A row's text has the text of each copied column, as both servers write it under the same settings
(:mod:`kainite.targets.postgresql.text_forms`). Each side cuts a table for itself into ranges of pages, and adds up the
hashes of their rows by *buckets*: a row's bucket follows from the text of its key. So neither an order nor an index is
needed, no collation counts, and both sides may be partitioned in different ways. Where a bucket's count or sum differs,
its rows are read from both sides, by key and hash.

Where the types of a column differ, so may texts of equal values; what is done about it:

==================================  =================================================================================
types                               text
==================================  =================================================================================
``numeric`` of different scales     without zeros at the end
``json`` and ``jsonb``              that of ``jsonb``
any others                          as it is; ``character(n)`` without spaces at the end, as always
==================================  =================================================================================

A table without a primary key has no keys: its rows are counted by their texts.

The hash is PostgreSQL's own of 64 bits, which is the same in each version on machines of one byte order; and texts are
hashed as they are stored, in the database's encoding. :func:`hash_probe` tells whether both sides agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kainite.replicate.page_ranges import PageRange, page_ranges
from kainite.replicate.plan import quoted
from kainite.replicate.tables import ReplicaColumn, ReplicaTable, TablePart

ROWS_OF_A_BUCKET: Final = 1024
"""Rows that a bucket is to have; they are read from both sides if one of them differs."""

MOST_BUCKETS: Final = 4096
"""Buckets of a table at most: each range of rows sends one line for each."""

_BYTES_OF_A_ROW: Final = 256  # where a table was never analyzed
_JSON: Final = ("json", "jsonb")
_PROBE: Final = "'kainite'::text"


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """A table in one of the databases.

    Attributes:
        parts: where its rows are.
        key: an expression: the text of a row's key.
        row: an expression: the text of a row.
        values: expressions: the text of each column.
        rows: a condition on its rows; None: all.
    """

    parts: tuple[TablePart, ...]
    key: str
    row: str
    values: tuple[str, ...]
    rows: str | None

    def ranges(self, pages: int) -> Iterator[PageRange]:
        """Yields ranges of ``pages`` pages that together are the table."""
        for part in self.parts:
            yield from page_ranges(part, pages)


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """A table of both databases.

    Attributes:
        name: its name, with its schema.
        columns: the names of the columns that are compared.
        key: the columns of its primary key, as SQL, each with its type; empty for a table without one.
        key_columns: their names.
        buckets: how many buckets its rows are in, a power of two.
        source, target: both sides.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[tuple[str, str], ...]
    key_columns: tuple[str, ...]
    buckets: int
    source: ComparedSide
    target: ComparedSide

    @property
    def bytes(self) -> int:
        """Returns the size of both sides."""
        return sum(part.bytes for side in (self.source, self.target) for part in side.parts)


def compared_table(source: ReplicaTable, target: ReplicaTable | None) -> ComparedTable | str:
    """Returns how a table is compared, or why it cannot be.

    Args:
        source: the source's table.
        target: the target's; None if there is none.
    """
    if target is None:
        return "the target has no such table"
    theirs = {column.name: column for column in target.columns}
    pairs = [(column, theirs.get(column.name)) for column in source.copied]
    if missing := [column.name for column, other in pairs if other is None]:
        return f"the target's table has no column {', '.join(missing)}"
    found = [(column, other) for column, other in pairs if other is not None]
    names = tuple(column.name for column, _ in found)
    key = source.key if set(source.key) <= set(names) else ()
    types = {column.name: (quoted(column), column.type) for column, _ in found}
    rows = max(source.rows, target.rows, source.bytes // _BYTES_OF_A_ROW)
    ours = _side(source, key, {one.name: _text(one, other) for one, other in found})
    its = _side(target, key, {one.name: _text(other, one) for one, other in found})
    return ComparedTable(source.full_name, names, tuple(types[name] for name in key), key, _buckets(rows), ours, its)


def _side(table: ReplicaTable, key: tuple[str, ...], texts: dict[str, str]) -> ComparedSide:
    values = tuple(texts.values())
    return ComparedSide(
        table.parts, _key_text(texts, key), f"ROW({', '.join(values)})::text", values, table.published_rows
    )


def sums_query(side: ComparedSide, buckets: int, one: PageRange) -> str:
    """Returns a query: for each bucket of a range its number, how many rows it has, and the sum of their hashes."""
    rows = _rows(side, f"ONLY {one.part}", one.condition)
    return (
        f"SELECT {_hash('k', 0)} & {buckets - 1} AS bucket, count(*), sum({_hash('r', 1)})::text"
        f" FROM ({rows}) AS t GROUP BY 1"
    )


def rows_query(side: ComparedSide, buckets: int, wanted: frozenset[int]) -> str:
    """Returns a query: the key's hash, the key's text and the row's hash of each row in the wanted buckets, sorted."""
    parts = " UNION ALL ".join(f"({_rows(side, f'ONLY {part.sql}', 'true')})" for part in side.parts)
    chosen = f"'{{{','.join(map(str, sorted(wanted)))}}}'::bigint[]"
    return (
        f"SELECT kh, k, {_hash('r', 1)} AS rh FROM (SELECT k, r, {_hash('k', 0)} AS kh FROM ({parts}) AS t OFFSET 0)"
        f" AS u WHERE kh & {buckets - 1} = ANY({chosen}) ORDER BY kh"
    )


def values_query(table: ComparedTable, side: ComparedSide) -> str:
    """Returns a query: the texts of the columns of the row that has a key, given as two lists of the same texts."""
    texts = dict(zip(table.columns, side.values, strict=True))
    equal = [f"{_escaped(name)} = %s::{_escaped(kind)}" for name, kind in table.key]
    same = [f"{_escaped(texts[name])} = %s" for name in table.key_columns]
    more = [f"({_escaped(side.rows)})"] if side.rows else []
    where = " AND ".join((*equal, *same, *more))
    values = _escaped(", ".join(side.values))
    parts = " UNION ALL ".join(f"SELECT {values} FROM ONLY {_escaped(part.sql)} WHERE {where}" for part in side.parts)
    return f"SELECT * FROM ({parts}) AS t LIMIT 1"


def hash_probe() -> str:
    """Returns a query whose answer must be the same on both sides."""
    return f"SELECT {_hash(_PROBE, 1)}, current_setting('server_encoding')"


def _rows(side: ComparedSide, table: str, condition: str) -> str:
    """Returns a query for the texts; OFFSET 0 lets each be made once, however often it is used."""
    wanted = f" AND ({side.rows})" if side.rows else ""
    return f"SELECT {side.key} AS k, {side.row} AS r FROM {table} WHERE {condition}{wanted} OFFSET 0"


def _hash(text: str, seed: int) -> str:
    return f'hashtextextended({text} COLLATE "C", {seed})'


def _text(column: ReplicaColumn, other: ReplicaColumn) -> str:
    """Returns an expression: the text of a column whose values the other side's column has too."""
    name = quoted(column)
    if column.type != other.type:
        if column.type.startswith("numeric") and other.type.startswith("numeric"):
            return f"trim_scale({name})::text" if "[" not in column.type + other.type else f"{name}::text"
        if column.type in _JSON and other.type in _JSON:
            return f"{name}::jsonb::text"
    return f"{name}::text"


def _key_text(texts: dict[str, str], key: tuple[str, ...]) -> str:
    """Returns an expression: the text of a row's key; that of all columns where there is no key."""
    return (
        texts[key[0]] if len(key) == 1 else f"json_build_array({', '.join(texts[name] for name in key or texts)})::text"
    )


def _buckets(rows: int) -> int:
    wanted = max(rows, 1) // ROWS_OF_A_BUCKET
    return min(1 << wanted.bit_length(), MOST_BUCKETS)


def _escaped(text: str) -> str:
    """Returns SQL as psycopg takes it, where names may have a percent sign."""
    return text.replace("%", "%%")
