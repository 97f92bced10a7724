"""What the threads of a comparison with a MariaDB source do: read rows of both sides, and hash them here.

A thread has one of the source's sessions, whose snapshot no other session can take over, and a session of its own with
the target. :mod:`kainite.replicate.binlog_compared` says how a row is hashed. A row's values are read once more when it
is known that it differs, so that what differs takes no memory but its key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import psycopg
import pymysql

from kainite.base.errors import KainiteError, SourceError
from kainite.base.redaction import redacted
from kainite.capture.mysql.snapshot_session import SnapshotGoneError, SnapshotSession
from kainite.replicate.binlog_compared import KeyRange, PairedRows, RowTexts
from kainite.replicate.known_rows import Explanation, KnownRows
from kainite.replicate.page_ranges import RowRange
from kainite.replicate.row_merge import BucketSums, DifferingRow, RowDifference, RowHash, differing_rows
from kainite.replicate.same_point import SamePoint
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

WHOLE_PAGES = 2**31
"""Pages of a range that is a whole table of PostgreSQL."""


@dataclass(frozen=True, slots=True)
class BinlogVerifyTask:
    """What all threads of a comparison have in common.

    Attributes:
        target: the target's URL; ``repr`` leaves it out, since it may hold a password.
        point: the target's snapshot, and the units that are not applied.
        tables: the tables that are compared.
        catalogue: the target's tables.
        most_rows: most differing rows that an item gives.
    """

    target: str = field(repr=False)
    point: SamePoint
    tables: tuple[PairedRows, ...]
    catalogue: Catalogue
    most_rows: int


def run_binlog_items(
    task: BinlogVerifyTask, session: SnapshotSession, items: Iterable[RangeItem | BucketsItem]
) -> Iterator[RangeSums | BucketsRows]:
    """Yields the results of items.

    Args:
        task: what the items have in common.
        session: has the source's snapshot; of this thread alone.
        items: the items.

    Raises:
        SourceError: the source did not answer, or its snapshot is gone.
        TargetUnavailableError: the same of the target.
    """
    with Snapshots({Side.TARGET: (task.target, task.point.target)}) as snapshots:
        reading = _BothSides(task, session, snapshots)
        for item in items:
            yield reading.sums(item) if isinstance(item, RangeItem) else reading.rows(item)


@dataclass(slots=True)
class _BothSides:
    """One thread's sessions.

    Attributes:
        task: what all threads have in common.
        session: with the source.
        snapshots: the target's.
        read: how many bytes of texts came since the item began.
    """

    task: BinlogVerifyTask
    session: SnapshotSession
    snapshots: Snapshots
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
        rows = self._hashed(table, side, _whole(table, side))
        return sorted(row for _, row in rows if row[0] & (table.buckets - 1) in buckets)

    def _with_values(self, table: PairedRows, rows: Sequence[ExplainedRow]) -> tuple[ExplainedRow, ...]:
        ours = self._values(table, Side.SOURCE, {one.row.key for one in rows if one.row.how != RowDifference.EXTRA})
        its = self._values(table, Side.TARGET, {one.row.key for one in rows if one.row.how != RowDifference.MISSING})
        return tuple(replace(one, source=ours.get(one.row.key), target=its.get(one.row.key)) for one in rows)

    def _values(self, table: PairedRows, side: Side, keys: set[str]) -> dict[str, tuple[str | None, ...]]:
        """Returns the texts of the rows that have some keys."""
        if not keys:
            return {}
        rows = self._hashed(table, side, _whole(table, side))
        return {key: tuple(texts) for texts, (_, key, _) in rows if key in keys}

    def _explaining(self, table: PairedRows) -> Callable[[DifferingRow], Explanation]:
        known = KnownRows(self.task.point.units, self.task.catalogue)

        def explain(row: DifferingRow) -> Explanation:
            return known.explain(table.name, key_texts(table, row.key) or None)

        return explain

    def _hashed(self, table: PairedRows, side: Side, ranges: Iterable[RowRange]) -> Iterator[tuple[RowTexts, RowHash]]:
        """Yields rows, each as its texts and its hashes."""
        hashed = table.hashed()
        for one in ranges:
            for texts in self._source(table, one) if side is Side.SOURCE else self._target(table, one):
                row, size = hashed(texts)
                self.read += size
                yield texts, row

    def _source(self, table: PairedRows, one: RowRange) -> Iterator[RowTexts]:
        try:
            yield from self.session.rows(table.source.query(one.condition), table.spellings)
        except (SnapshotGoneError, pymysql.Error, OSError) as error:
            raise _source_failure(error) from None

    def _target(self, table: PairedRows, one: RowRange) -> Iterator[RowTexts]:
        try:
            connection = self.snapshots.session(Side.TARGET)
            with connection.cursor() as cursor, cursor.copy(table.copy_query(one).encode()) as copy:
                copy.set_types(["text"] * len(table.columns))
                yield from copy.rows()
        except psycopg.Error as error:
            raise failure_of(Side.TARGET, error) from None


def key_texts(table: PairedRows, key: str) -> dict[str, str]:
    """Returns the texts of a key's columns, of the text of a key; none for a table without a key."""
    return dict(zip(table.key_columns, json.loads(key), strict=True)) if table.key_columns else {}


def _whole(table: PairedRows, side: Side) -> Iterable[RowRange]:
    return [KeyRange(table.source.name, "TRUE")] if side is Side.SOURCE else table.target_ranges(WHOLE_PAGES)


def _source_failure(error: Exception) -> KainiteError:
    cause = redacted(" ".join(str(error.args[-1] if error.args else error).split()))
    return SourceError(f"the source: {cause}; start the comparison again")
