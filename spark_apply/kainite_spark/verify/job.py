"""The driver of a comparison: takes both snapshots, adds up both sides, and goes down to the rows where they differ.

::

    tables of both sides ─► snapshots at one point ─► sums of ranges ─► rows of buckets that differ
      ─► values of some of these rows

Nothing is written but the ledger's row. A comparison that is killed, or loses a connection, leaves nothing, and is
started again.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import psycopg

from kainite.base.errors import StoppedError
from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.replicate.compared_tables import ComparedTable, values_query
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.ends_compared import tables_to_compare
from kainite.replicate.known_rows import Explanation
from kainite.replicate.page_ranges import pages_of_a_range
from kainite.replicate.row_merge import BucketSums, RowDifference, differing_buckets
from kainite.replicate.same_point import PointRequest, SamePoint, same_point
from kainite.replicate.verify_ledger import VerifyLedger
from kainite.replicate.verify_report import RowReport, TableReport, VerifyReport
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.verify.runners import ItemRunner
from kainite_spark.verify.tasks import (
    BucketsItem,
    BucketsRows,
    ExplainedRow,
    RangeItem,
    RangeSums,
    Side,
    Snapshots,
    VerifyTask,
    failure_of,
    key_of,
    side_of,
)

ITEMS_A_JOB: Final = 128
"""Most items of a job, so that the progress is told."""

ROWS_OF_AN_ITEM: Final = 200_000
"""Rows of buckets that one task compares at most, unless one bucket has more."""

ROWS_ALONE: Final = 20_000
"""Rows of buckets for which one task is enough: each reads the whole table again."""


@dataclass(slots=True)
class VerifyProgress:
    """How far a comparison is.

    Attributes:
        doing: what it does.
        done, items: how many items are done of how many; 0 of 0 before it has any.
        rows: how many rows were read.
    """

    doing: str = "looking at the tables"
    done: int = 0
    items: int = 0
    rows: int = 0


@dataclass(slots=True)
class VerifyJob:
    """Compares a source with its target.

    Attributes:
        ends: both.
        connection: a session with the target, in autocommit mode, of this job alone.
        runner: given the size of all tables, returns what runs the items.
        catalogue: the target's tables.
        only: tables that are compared, with their schemas; empty: all.
        most_rows: most rows that are shown.
        wait: seconds for which the apply job is waited for.
        lock_wait: seconds to wait for open transactions of the source.
        stop: set to end the comparison.
        look: called now and then, for progress.
        before: called under the snapshots, before anything is compared.
    """

    ends: ReplicaEnds
    connection: psycopg.Connection
    runner: Callable[[int], ItemRunner]
    catalogue: Catalogue
    only: Sequence[str] = ()
    most_rows: int = 100
    wait: float = 600.0
    lock_wait: float = LOCK_WAIT_S
    stop: threading.Event = field(default_factory=threading.Event)
    look: Callable[[VerifyProgress], None] = lambda _: None
    before: Callable[[], None] = lambda: None
    _progress: VerifyProgress = field(default_factory=VerifyProgress)
    _wire_bytes: int = 0

    def run(self) -> VerifyReport:
        """Compares; returns what was found.

        Raises:
            SettingsError: ``only`` names a table that is not published.
            SourceError: the source refused, does not answer, or a transaction is in the way of the point.
            TargetError: another comparison runs, or no apply job came to the point in time.
            TargetUnavailableError: the target does not answer.
            SparkUnavailableError: a Spark job failed.
            StoppedError: ``stop`` was set.
        """
        began = time.monotonic()
        tables, left_out = tables_to_compare(self.ends, self.only)
        ledger = VerifyLedger(self.connection, self.ends.log_partition, self.stop)
        ledger.begin()
        request = PointRequest(
            self.ends,
            [part.oid for table in tables for part in table.source.parts],
            [part.sql for table in tables for part in table.target.parts],
            self.wait,
            self.stop,
            self.lock_wait,
            self._wait,
        )
        with same_point(request, ledger) as point:
            self.before()
            tables = self._ready(tables, point, left_out)
            reports, rows = self._compare(tables, point)
        ended = datetime.now(UTC).isoformat(timespec="seconds")
        report = VerifyReport(ended, format_lsn(point.lsn), reports, rows, left_out, point.units,
                              time.monotonic() - began, ledger.held_ms(), self._wire_bytes)  # fmt: skip
        if not self.only:
            ledger.note(report.outcome())
        return report

    def _ready(
        self, tables: Sequence[ComparedTable], point: SamePoint, left_out: dict[str, str]
    ) -> tuple[ComparedTable, ...]:
        """Leaves out the tables that are not as of the point."""
        unready = {f"{schema}.{name}": why for (schema, name), why in point.unready.items()}
        left_out |= {table.name: unready[table.name] for table in tables if table.name in unready}
        return tuple(table for table in tables if table.name not in unready)

    def _compare(
        self, tables: tuple[ComparedTable, ...], point: SamePoint
    ) -> tuple[tuple[TableReport, ...], tuple[RowReport, ...]]:
        task = VerifyTask(self.ends, point, tables, self.catalogue, self.most_rows)
        runner = self.runner(sum(table.bytes for table in tables))
        sums = self._sums(task, runner)
        buckets = list(_buckets(sums, runner.parallelism))
        found = self._rows(task, buckets, runner) if buckets else []
        with Snapshots(self.ends, point) as snapshots:
            rows = tuple(self._valued(task, found, snapshots))
        reports = tuple(_report(place, table, sums[place], found) for place, table in enumerate(tables))
        return reports, rows

    def _sums(self, task: VerifyTask, runner: ItemRunner) -> list[Mapping[Side, BucketSums]]:
        """Returns the sums of each table."""
        self._progress.doing = "adding up"
        sums: list[Mapping[Side, BucketSums]] = [{side: BucketSums() for side in Side} for _ in task.tables]
        items = list(_range_items(task.tables, runner.parallelism))
        for result in self._run(task, items, runner):
            assert isinstance(result, RangeSums)
            sums[result.item.table][result.item.side].add(result.sums)
            self._progress.rows += sum(count for _, count, _ in result.sums)
        return sums

    def _rows(self, task: VerifyTask, items: list[BucketsItem], runner: ItemRunner) -> list[BucketsRows]:
        self._progress.doing = "looking for the rows that differ"
        return [result for result in self._run(task, items, runner) if isinstance(result, BucketsRows)]

    def _run(
        self, task: VerifyTask, items: Sequence[RangeItem] | Sequence[BucketsItem], runner: ItemRunner
    ) -> Iterator[RangeSums | BucketsRows]:
        self._progress.done, self._progress.items = 0, len(items)
        for first in range(0, len(items), ITEMS_A_JOB):
            for result in runner.run(task, items[first : first + ITEMS_A_JOB], self._tell):
                self._wire_bytes += result.wire_bytes
                self._progress.done += 1
                yield result
            self._tell()

    def _wait(self, what: str) -> None:
        self._progress.doing = what
        self._tell()

    def _tell(self) -> None:
        if self.stop.is_set():
            raise StoppedError("the comparison was stopped")
        self.look(self._progress)

    def _valued(self, task: VerifyTask, found: Sequence[BucketsRows], snapshots: Snapshots) -> Iterator[RowReport]:
        """Yields some of the rows, those that no unit explains first, with their values."""
        order = list(Explanation)
        rows = [(task.tables[part.item.table], row) for part in found for row in part.rows]
        rows.sort(key=lambda one: order.index(one[1].why))
        for table, row in rows[: self.most_rows]:
            yield _valued(table, row, snapshots)


def _range_items(tables: Sequence[ComparedTable], parallelism: int) -> Iterator[RangeItem]:
    """Yields the ranges of all tables, both sides in turn, the largest table first."""
    for place in sorted(range(len(tables)), key=lambda place: -tables[place].bytes):
        for side in Side:
            one = side_of(tables[place], side)
            pages = pages_of_a_range([one], parallelism)
            yield from (RangeItem(place, side, pages) for pages in one.ranges(pages))


def _buckets(sums: Sequence[Mapping[Side, BucketSums]], parallelism: int) -> Iterator[BucketsItem]:
    """Yields the buckets that differ, as many together as one task compares."""
    for place, sides in enumerate(sums):
        differing = differing_buckets(sides[Side.SOURCE], sides[Side.TARGET])
        rows = sum(differing.values())
        items = min(max(parallelism, -(-rows // ROWS_OF_AN_ITEM)), len(differing), -(-rows // ROWS_ALONE))
        for first in range(items):
            yield BucketsItem(place, frozenset(list(differing)[first::items]))


def _report(
    place: int, table: ComparedTable, sums: Mapping[Side, BucketSums], found: Sequence[BucketsRows]
) -> TableReport:
    def count(why: Explanation, *hows: RowDifference) -> int:
        mine = (part.counts for part in found if part.item.table == place)
        return sum(counts[how, why] for counts in mine for how in hows)

    return TableReport(
        table.name,
        sums[Side.SOURCE].rows,
        sums[Side.TARGET].rows,
        count(Explanation.NONE, RowDifference.MISSING),
        count(Explanation.NONE, RowDifference.EXTRA),
        count(Explanation.NONE, RowDifference.CHANGED),
        count(Explanation.UNSURE, *RowDifference),
        count(Explanation.KNOWN, *RowDifference),
    )


def _valued(table: ComparedTable, found: ExplainedRow, snapshots: Snapshots) -> RowReport:
    """Returns a row with the values of both sides, of all columns where one side has no such row."""
    row = found.row
    key = key_of(table, row.key)
    sides = {side: _values(table, side, key, row.key, snapshots) for side in Side}
    if row.how is RowDifference.MISSING:
        sides[Side.TARGET] = None
    elif row.how is RowDifference.EXTRA:
        sides[Side.SOURCE] = None
    ours, its = sides[Side.SOURCE], sides[Side.TARGET]
    shown = [place for place in range(len(table.columns)) if ours is None or its is None or ours[place] != its[place]]
    return RowReport(
        table.name,
        dict(zip(table.key_columns, key, strict=True)),
        row.how,
        found.why,
        row.times,
        tuple(table.columns[place] for place in shown),
        None if ours is None else tuple(ours[place] for place in shown),
        None if its is None else tuple(its[place] for place in shown),
    )


def _values(
    table: ComparedTable, side: Side, key: tuple[str, ...], text: str, snapshots: Snapshots
) -> tuple[str | None, ...] | None:
    """Returns the texts of a row's columns; None where the side has no such row."""
    if not table.key:
        return tuple(json.loads(text))
    one = side_of(table, side)
    try:
        query = values_query(table, one).encode()
        return snapshots.session(side).execute(query, (*key, *key) * len(one.parts)).fetchone()
    except psycopg.Error as error:
        raise failure_of(side, error) from None
