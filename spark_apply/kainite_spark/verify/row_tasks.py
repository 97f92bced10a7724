"""What the threads of a comparison do where MariaDB is one of the ends: read rows of both sides, and hash them here.

A thread has sessions of its own with both sides. Those with MariaDB are given, since no other session can take over
their snapshots; those with PostgreSQL import the snapshot when they are opened. :mod:`kainite.replicate.paired_rows`
says how a row is hashed. A row's values are read once more when it is known that it differs, so that what differs takes
no memory but its key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import psycopg
import pymysql

from kainite.base.errors import KainiteError, SourceError, TargetUnavailableError
from kainite.base.redaction import redacted
from kainite.capture.mysql.snapshot_session import SnapshotGoneError, SnapshotSession
from kainite.replicate.known_rows import Explanation, KnownRows
from kainite.replicate.page_ranges import RowRange
from kainite.replicate.paired_rows import MariadbRows, PairedRows, RowsSide, RowTexts
from kainite.replicate.row_merge import BucketSums, DifferingRow, RowDifference, RowHash, differing_rows
from kainite.replicate.stop_ledger import UnresolvedUnit
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.verify.tasks import (
    BucketsItem,
    BucketsRows,
    ExplainedRow,
    RangeItem,
    RangeSums,
    Side,
    Snapshots,
    explained,
    failure_of,
)


class RowReader(Protocol):
    """One thread's way to the rows of a side, under its snapshot."""

    def rows(self, table: RowsSide, columns: Sequence[str], one: RowRange) -> Iterator[RowTexts]:
        """Yields the texts of columns of the rows of a range.

        Raises:
            SourceError: the source did not answer, or its snapshot is gone.
            TargetUnavailableError: the same of the target.
        """


@dataclass(frozen=True, slots=True)
class MariadbReader:
    """Implements :class:`RowReader`.

    Attributes:
        session: has the snapshot; of one thread alone.
        side: which side it reads.
    """

    session: SnapshotSession
    side: Side

    def rows(self, table: RowsSide, columns: Sequence[str], one: RowRange) -> Iterator[RowTexts]:
        assert isinstance(table, MariadbRows), "the tables are those of the side"
        try:
            yield from self.session.rows(table.query(columns, one), table.spellings(columns))
        except (SnapshotGoneError, pymysql.Error, OSError) as error:
            raise _failure(self.side, error) from None


@dataclass(frozen=True, slots=True)
class PostgresReader:
    """Implements :class:`RowReader`.

    Attributes:
        snapshots: opens the session.
        side: which side it reads.
    """

    snapshots: Snapshots
    side: Side

    def rows(self, table: RowsSide, columns: Sequence[str], one: RowRange) -> Iterator[RowTexts]:
        try:
            session = self.snapshots.session(self.side)
            with session.cursor() as cursor, cursor.copy(table.query(columns, one).encode()) as copy:
                copy.set_types(["text"] * len(columns))
                yield from copy.rows()
        except psycopg.Error as error:
            raise failure_of(self.side, error) from None


@dataclass(frozen=True, slots=True)
class RowTask:
    """What all threads of a comparison have in common.

    Attributes:
        units: the units that are not applied.
        tables: the tables that are compared.
        catalogue: the target's tables.
        most_rows: most differing rows that an item gives.
    """

    units: tuple[UnresolvedUnit, ...]
    tables: tuple[PairedRows, ...]
    catalogue: Catalogue
    most_rows: int


def run_row_items(
    task: RowTask, readers: Mapping[Side, RowReader], items: Iterable[RangeItem | BucketsItem]
) -> Iterator[RangeSums | BucketsRows]:
    """Yields the results of items.

    Args:
        task: what the items have in common.
        readers: read both sides; of this thread alone.
        items: the items.

    Raises:
        SourceError: the source did not answer, or its snapshot is gone.
        TargetUnavailableError: the same of the target.
    """
    reading = _BothSides(task, readers)
    for item in items:
        yield reading.sums(item) if isinstance(item, RangeItem) else reading.rows(item)


@dataclass(slots=True)
class _BothSides:
    """One thread's reading.

    Attributes:
        task: what all threads have in common.
        readers: read both sides.
        read: how many bytes of texts came since the item began.
    """

    task: RowTask
    readers: Mapping[Side, RowReader]
    read: int = 0

    def sums(self, item: RangeItem) -> RangeSums:
        """Returns the sums of a range."""
        self.read = 0
        table, sums = self.task.tables[item.table], BucketSums()
        buckets = table.buckets - 1
        for _, (key_hash, _, row_hash) in self._hashed(table, item.side, [item.rows]):
            sums.counts[key_hash & buckets] += 1
            sums.sums[key_hash & buckets] += row_hash
        found = tuple((bucket, count, sums.sums[bucket]) for bucket, count in sums.counts.items())
        return RangeSums(item, found, self.read)

    def rows(self, item: BucketsItem) -> BucketsRows:
        """Returns the rows of buckets that differ, some of them with their values."""
        self.read = 0
        table = self.task.tables[item.table]
        source, target = (self._of_buckets(table, side, item.buckets) for side in (Side.SOURCE, Side.TARGET))
        differing = differing_rows(source, target, keyed=bool(table.key_columns))
        counts, rows = explained(differing, self._explaining(table), self.task.most_rows)
        return BucketsRows(item, counts, self._with_values(table, rows), self.read)

    def _of_buckets(self, table: PairedRows, side: Side, buckets: frozenset[int]) -> list[RowHash]:
        rows = self._hashed(table, side, of_side(table, side).whole())
        return sorted(row for _, row in rows if row[0] & (table.buckets - 1) in buckets)

    def _with_values(self, table: PairedRows, rows: Sequence[ExplainedRow]) -> tuple[ExplainedRow, ...]:
        ours = self._values(table, Side.SOURCE, {one.row.key for one in rows if one.row.how != RowDifference.EXTRA})
        its = self._values(table, Side.TARGET, {one.row.key for one in rows if one.row.how != RowDifference.MISSING})
        return tuple(replace(one, source=ours.get(one.row.key), target=its.get(one.row.key)) for one in rows)

    def _values(self, table: PairedRows, side: Side, keys: set[str]) -> dict[str, tuple[str | None, ...]]:
        """Returns the texts of the rows that have some keys."""
        if not keys:
            return {}
        rows = self._hashed(table, side, of_side(table, side).whole())
        return {key: tuple(texts) for texts, (_, key, _) in rows if key in keys}

    def _explaining(self, table: PairedRows) -> Callable[[DifferingRow], Explanation]:
        known = KnownRows(self.task.units, self.task.catalogue)

        def explain(row: DifferingRow) -> Explanation:
            return known.explain(table.name, key_texts(table, row.key) or None)

        return explain

    def _hashed(self, table: PairedRows, side: Side, ranges: Iterable[RowRange]) -> Iterator[tuple[RowTexts, RowHash]]:
        """Yields rows, each as its texts and its hashes."""
        hashed, reader = table.hashed(), self.readers[side]
        for one in ranges:
            for texts in reader.rows(of_side(table, side), table.columns, one):
                row, size = hashed(texts)
                self.read += size
                yield texts, row


def key_texts(table: PairedRows, key: str) -> dict[str, str]:
    """Returns the texts of a key's columns, of the text of a key; none for a table without a key."""
    return dict(zip(table.key_columns, json.loads(key), strict=True)) if table.key_columns else {}


def of_side(table: PairedRows, side: Side) -> RowsSide:
    """Returns a side of a table."""
    return table.source if side is Side.SOURCE else table.target


def _failure(side: Side, error: Exception) -> KainiteError:
    cause = redacted(" ".join(str(error.args[-1] if error.args else error).split()))
    kind = SourceError if side is Side.SOURCE else TargetUnavailableError
    return kind(f"the {side}: {cause}; start the comparison again")
