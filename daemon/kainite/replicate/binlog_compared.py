"""Says how rows of a MariaDB source and of its PostgreSQL target are compared: by hashes over one canonical text. Pure.

The servers have no hash over one text in common: MariaDB writes floating-point numbers with fewer digits than they
have, documents as they came, and so on. So both sides' rows are read, each column is brought to one text
(:mod:`~kainite.replicate.canonical_texts`), and hashed here.

Each side cuts a table for itself: the source into ranges of its primary key, the target into ranges of pages. Hashes of
rows are added up by *buckets*: a row's bucket follows from the hash of its key's text. So no order and no collation
counts. Where a bucket differs, its rows are read from both sides again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import orjson

from kainite.capture.mysql.snapshot_tables import SnapshotTable
from kainite.capture.mysql.text_forms import TextSpelling
from kainite.replicate.canonical_texts import CANONICAL, TextKind, text_kind
from kainite.replicate.compared_tables import bucket_count
from kainite.replicate.page_ranges import PageRange, RowRange, page_ranges
from kainite.replicate.plan import quoted
from kainite.replicate.row_merge import RowHash
from kainite.replicate.tables import ReplicaTable

RowTexts: TypeAlias = Sequence[str | None]
"""The texts of a row's columns, as a side writes them."""

_HASH_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Rows of a table of the source.

    Attributes:
        part: the table's name.
        condition: which rows, as SQL.
    """

    part: str
    condition: str


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
    source: SnapshotTable
    target: ReplicaTable
    buckets: int

    @property
    def bytes(self) -> int:
        """Returns the size of both sides."""
        return self.source.bytes + self.target.bytes

    @property
    def spellings(self) -> tuple[TextSpelling, ...]:
        """Returns what becomes of what the source's server gives."""
        return tuple(column.form.spelling for column in self.source.copied)

    def copy_query(self, rows: RowRange) -> str:
        """Returns the statement that gives rows of the target."""
        names = {column.name: quoted(column) for column in self.target.columns}
        listed = ", ".join(names[name] for name in self.columns)
        return f"COPY (SELECT {listed} FROM ONLY {rows.part} WHERE {rows.condition}) TO STDOUT"

    def target_ranges(self, pages: int) -> Iterator[PageRange]:
        """Yields ranges of ``pages`` pages that together are the target's table."""
        for part in self.target.parts:
            yield from page_ranges(part, pages)

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


def paired_rows(name: str, source: SnapshotTable, target: ReplicaTable | None) -> PairedRows | str:
    """Returns how a table is compared, or why it cannot be.

    Args:
        name: the target's name, with its schema.
        source: the source's table.
        target: the target's; None if there is none.
    """
    if target is None:
        return "the target has no such table"
    theirs = {column.name: column for column in target.columns}
    names = tuple(column.name for column in source.copied)
    if missing := [column for column in names if column not in theirs]:
        return f"the target's table has no column {', '.join(missing)}"
    key = source.key if set(source.key) <= set(names) else ()
    kinds = tuple(text_kind(column.data_type, theirs[column.name].type) for column in source.copied)
    return PairedRows(name, names, key, kinds, source, target, bucket_count(max(source.rows, target.rows)))


def _hash(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=_HASH_BYTES).digest())
