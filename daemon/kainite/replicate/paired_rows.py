"""Says how rows of two databases are compared whose servers have no hash over one text in common. Pure.

MariaDB writes floating-point numbers with fewer digits than they have, documents as they came, and so on, and has no
hash that PostgreSQL has. So wherever MariaDB is one of the ends, both sides' rows are read, each column is brought to
one text (:mod:`~kainite.replicate.canonical_texts`), and hashed here.

Each side cuts a table for itself: MariaDB into ranges of its primary key, PostgreSQL into ranges of pages. Hashes of
rows are added up by *buckets*: a row's bucket follows from the hash of its key's text. So no order and no collation
counts. Where a bucket differs, its rows are read from both sides again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

import orjson

from kainite.capture.mysql.snapshot_tables import SnapshotTable
from kainite.capture.mysql.text_forms import TextSpelling
from kainite.replicate.canonical_texts import CANONICAL, TextKind
from kainite.replicate.compared_tables import bucket_count
from kainite.replicate.page_ranges import MOST_PAGES, RowRange, page_ranges
from kainite.replicate.plan import quoted
from kainite.replicate.row_merge import RowHash
from kainite.replicate.tables import ReplicaTable

RowTexts: TypeAlias = Sequence[str | None]
"""The texts of a row's columns, as a side writes them."""

_HASH_BYTES: Final = 8
_WHOLE_PAGES: Final = 2**31
"""Pages of a range that is a whole table of PostgreSQL."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Rows of a table of MariaDB.

    Attributes:
        part: the table's name.
        condition: which rows, as SQL.
    """

    part: str
    condition: str


class RowsSide(Protocol):
    """A table of one of two databases."""

    @property
    def types(self) -> Mapping[str, str]:
        """Returns the type of each column, in order: as PostgreSQL spells it, or MariaDB's name alone."""

    @property
    def carried(self) -> tuple[str, ...]:
        """Returns the columns whose values a source gives."""

    @property
    def key(self) -> tuple[str, ...]:
        """Returns the columns of the primary key."""

    @property
    def rows(self) -> int:
        """Returns how many rows it has, estimated."""

    @property
    def bytes(self) -> int:
        """Returns its size."""

    @property
    def sql(self) -> Sequence[str]:
        """Returns the names, as SQL, of what holds its rows."""

    def ranges(self) -> Iterator[RowRange]:
        """Yields ranges that together have each row once."""

    def whole(self) -> Iterator[RowRange]:
        """Yields the same, as few as there can be."""

    def query(self, columns: Sequence[str], rows: RowRange) -> str:
        """Returns the statement that gives the texts of columns of rows."""


@dataclass(frozen=True, slots=True)
class PostgresRows:
    """A table of PostgreSQL; implements :class:`RowsSide`.

    Attributes:
        table: the table.
        shown: how columns are spelled in SQL whose texts are not what is wanted.
    """

    table: ReplicaTable
    shown: Mapping[str, str] = field(default_factory=dict)

    @property
    def types(self) -> Mapping[str, str]:
        return {column.name: column.type for column in self.table.columns}

    @property
    def carried(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.table.copied)

    @property
    def key(self) -> tuple[str, ...]:
        return self.table.key

    @property
    def rows(self) -> int:
        return self.table.rows

    @property
    def bytes(self) -> int:
        return self.table.bytes

    @property
    def sql(self) -> Sequence[str]:
        return [part.sql for part in self.table.parts]

    def ranges(self) -> Iterator[RowRange]:
        return (one for part in self.table.parts for one in page_ranges(part, MOST_PAGES))

    def whole(self) -> Iterator[RowRange]:
        return (one for part in self.table.parts for one in page_ranges(part, _WHOLE_PAGES))

    def query(self, columns: Sequence[str], rows: RowRange) -> str:
        names = {column.name: quoted(column) for column in self.table.columns}
        listed = ", ".join(self.shown.get(name, names[name]) for name in columns)
        wanted = f" AND ({self.table.published_rows})" if self.table.published_rows else ""
        return f"COPY (SELECT {listed} FROM ONLY {rows.part} WHERE {rows.condition}{wanted}) TO STDOUT"


@dataclass(frozen=True, slots=True)
class MariadbRows:
    """A table of MariaDB; implements :class:`RowsSide`.

    Attributes:
        table: the table.
        conditions: together have each row once.
    """

    table: SnapshotTable
    conditions: tuple[str, ...]

    @property
    def types(self) -> Mapping[str, str]:
        return {column.name: column.data_type for column in self.table.columns}

    @property
    def carried(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.table.copied)

    @property
    def key(self) -> tuple[str, ...]:
        return self.table.key

    @property
    def rows(self) -> int:
        return self.table.rows

    @property
    def bytes(self) -> int:
        return self.table.bytes

    @property
    def sql(self) -> Sequence[str]:
        return [self.table.sql]

    def ranges(self) -> Iterator[RowRange]:
        return (KeyRange(self.table.name, condition) for condition in self.conditions)

    def whole(self) -> Iterator[RowRange]:
        yield KeyRange(self.table.name, "TRUE")

    def query(self, columns: Sequence[str], rows: RowRange) -> str:
        named = {column.name: column for column in self.table.columns}
        return self.table.query(rows.condition, [named[name] for name in columns])

    def spellings(self, columns: Sequence[str]) -> tuple[TextSpelling, ...]:
        """Returns what becomes of what the server gives for columns."""
        named = {column.name: column.form.spelling for column in self.table.columns}
        return tuple(named[name] for name in columns)


@dataclass(frozen=True, slots=True)
class PairedRows:
    """A table of both databases.

    Attributes:
        name: the target's name, with its schema.
        columns: the names of the columns that are compared.
        key_columns: those of the source's primary key; empty where its texts are not all carried.
        kinds: how the texts of each column are brought to one.
        source, target: both tables.
        buckets: how many buckets its rows are in, a power of two.
    """

    name: str
    columns: tuple[str, ...]
    key_columns: tuple[str, ...]
    kinds: tuple[TextKind, ...]
    source: RowsSide
    target: RowsSide
    buckets: int

    @property
    def bytes(self) -> int:
        """Returns the size of both sides."""
        return self.source.bytes + self.target.bytes

    def canonical(self) -> Callable[[RowTexts], RowTexts]:
        """Returns what brings a row's texts to those that both sides agree on."""
        changed = [(place, CANONICAL[kind]) for place, kind in enumerate(self.kinds) if kind is not TextKind.AS_IT_IS]

        def canonical(texts: RowTexts) -> RowTexts:
            row = list(texts)
            for place, make in changed:
                if (text := row[place]) is not None:
                    row[place] = make(text)
            return row

        return canonical

    def hashed(self) -> Callable[[RowTexts], tuple[RowHash, int]]:
        """Returns what makes the hashes of a row, and the size of its texts, of the texts as a side writes them."""
        canonical, places = self.canonical(), [self.columns.index(name) for name in self.key_columns]

        def hashed(texts: RowTexts) -> tuple[RowHash, int]:
            row = canonical(texts)
            whole = orjson.dumps(row)
            key = orjson.dumps([row[place] for place in places]) if places else whole
            return (_hash(key), key.decode(), _hash(whole)), len(whole)

        return hashed


def paired_rows(
    name: str, source: RowsSide, target: RowsSide | None, kind_of: Callable[[str, str], TextKind]
) -> PairedRows | str:
    """Returns how a table is compared, or why it cannot be.

    Args:
        name: the target's name, with its schema.
        source: the source's table.
        target: the target's; None if there is none.
        kind_of: returns how the texts of a column are compared, given its type in the source and in the target.
    """
    if target is None:
        return "the target has no such table"
    ours, its, names = source.types, target.types, source.carried
    if missing := [name for name in names if name not in its]:
        return f"the target's table has no column {', '.join(missing)}"
    key = source.key if set(source.key) <= set(names) else ()
    kinds = tuple(kind_of(ours[name], its[name]) for name in names)
    return PairedRows(name, names, key, kinds, source, target, bucket_count(max(source.rows, target.rows)))


def _hash(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=_HASH_BYTES).digest())
