"""Says in SQL how rows of a source and of its target are compared: by hashes over one canonical text. Pure.

A column's value has a text, as both servers write it under the same settings
(:mod:`kainite.targets.postgresql.text_forms`). The text's hash, with the column's place as the seed, is combined with
those of the other columns, and the whole is hashed once more: so a row's hash tells which value is in which column, and
sums of hashes which row has which value. To put the texts together before would take the server four times as long.

Each side cuts a table for itself into ranges of pages, and adds up the hashes of their rows by *buckets*: a row's
bucket follows from the hash of its key. So neither an order nor an index is needed, no collation counts, and both sides
may be partitioned in different ways. Where a bucket's count or sum differs, its rows are read from both sides, by key
and hash.

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kainite.replicate.page_ranges import PageRange, RowRange, page_ranges
from kainite.replicate.plan import quoted
from kainite.replicate.tables import ReplicaColumn, ReplicaTable, TablePart

ROWS_OF_A_BUCKET: Final = 1024
"""Rows that a bucket is to have; they are read from both sides if one of them differs."""

MOST_BUCKETS: Final = 4096
"""Buckets of a table at most: each range of rows sends one line for each."""

_BYTES_OF_A_ROW: Final = 256  # where a table was never analyzed
_JSON: Final = ("json", "jsonb")
_PROBE: Final = ("'kainite'::text", "NULL::text")
_NULL: Final = 0x6B61696E697465  # stands for the hash of a NULL


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """A table in one of the databases.

    Attributes:
        parts: where its rows are.
        key: an expression: the text of a row's key.
        key_hash, row_hash: expressions: hashes of a row's key, and of a row.
        values: expressions: the text of each column.
        rows: a condition on its rows; None: all.
    """

    parts: tuple[TablePart, ...]
    key: str
    key_hash: str
    row_hash: str
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
    return ComparedTable(
        source.full_name, names, tuple(types[name] for name in key), key, bucket_count(rows), ours, its
    )


def _side(table: ReplicaTable, key: tuple[str, ...], texts: dict[str, str]) -> ComparedSide:
    values = tuple(texts.values())
    keys = [texts[name] for name in key] or values
    text = keys[0] if len(key) == 1 else f"json_build_array({', '.join(keys)})::text"
    return ComparedSide(table.parts, text, _hash(keys, 0), _hash(values, 1), values, table.published_rows)


def sums_query(side: ComparedSide, buckets: int, one: RowRange) -> str:
    """Returns a query: for each bucket of a range its number, how many rows it has, and the sum of their hashes."""
    return (
        f"SELECT {side.key_hash} & {buckets - 1}, count(*), sum({side.row_hash})::text"
        f" FROM ONLY {one.part} WHERE {one.condition}{_wanted(side)} GROUP BY 1"
    )


def rows_query(side: ComparedSide, buckets: int, wanted: frozenset[int]) -> str:
    """Returns a query: the key's hash, the key's text and the row's hash of each row in the wanted buckets, sorted."""
    chosen = f"'{{{','.join(map(str, sorted(wanted)))}}}'::bigint[]"
    parts = " UNION ALL ".join(
        f"SELECT {side.key_hash} AS kh, {side.key} AS k, {side.row_hash} AS rh FROM ONLY {part.sql}"
        f" WHERE {side.key_hash} & {buckets - 1} = ANY({chosen}){_wanted(side)}"
        for part in side.parts
    )
    return f"SELECT kh, k, rh FROM ({parts}) AS t ORDER BY kh"


def values_query(table: ComparedTable, side: ComparedSide) -> str:
    """Returns a query: the texts of the columns of the row that has a key, given as two lists of the same texts."""
    return _row_query(table, side, side.values)


def row_query(table: ComparedTable, side: ComparedSide, *, by_text: bool = True) -> str:
    """Returns a query: the row that has a key, given as for :func:`values_query`, its columns as they are.

    Args:
        table: the table.
        side: one of its sides.
        by_text: whether the row's key has the very texts; else they are given once, and equal values are enough.
    """
    names = [name.replace('"', '""') for name in table.columns]
    return _row_query(table, side, [f'"{name}"' for name in names], by_text=by_text)


def _row_query(table: ComparedTable, side: ComparedSide, shown: Sequence[str], *, by_text: bool = True) -> str:
    texts = dict(zip(table.columns, side.values, strict=True))
    equal = [f"{_escaped(name)} = %s::{_escaped(kind)}" for name, kind in table.key]
    same = [f"{_escaped(texts[name])} = %s" for name in table.key_columns] if by_text else []
    more = [f"({_escaped(side.rows)})"] if side.rows else []
    where = " AND ".join((*equal, *same, *more))
    values = _escaped(", ".join(shown))
    parts = " UNION ALL ".join(f"SELECT {values} FROM ONLY {_escaped(part.sql)} WHERE {where}" for part in side.parts)
    return f"SELECT * FROM ({parts}) AS t LIMIT 1"


def hash_probe() -> str:
    """Returns a query whose answer must be the same on both sides."""
    return f"SELECT {_hash(_PROBE, 1)}, current_setting('server_encoding')"


def _wanted(side: ComparedSide) -> str:
    return f" AND ({side.rows})" if side.rows else ""


def _hash(texts: Sequence[str], seed: int) -> str:
    """Returns an expression: a hash of texts in their order; a NULL is none of the texts."""
    each = " # ".join(
        f'coalesce(hashtextextended({text} COLLATE "C", {place}), {_NULL + place})' for place, text in enumerate(texts)
    )
    return f"hashint8extended({each}, {seed})"


def _text(column: ReplicaColumn, other: ReplicaColumn) -> str:
    """Returns an expression: the text of a column whose values the other side's column has too."""
    name = quoted(column)
    if column.type != other.type:
        if column.type.startswith("numeric") and other.type.startswith("numeric"):
            return f"trim_scale({name})::text" if "[" not in column.type + other.type else f"{name}::text"
        if column.type in _JSON and other.type in _JSON:
            return f"{name}::jsonb::text"
    return f"{name}::text"


def bucket_count(rows: int) -> int:
    """Returns how many buckets a table of so many rows has."""
    wanted = max(rows, 1) // ROWS_OF_A_BUCKET
    return min(1 << wanted.bit_length(), MOST_BUCKETS)


def _escaped(text: str) -> str:
    """Returns SQL as psycopg takes it, where names may have a percent sign."""
    return text.replace("%", "%%")
