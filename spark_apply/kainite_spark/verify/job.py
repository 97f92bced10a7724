"""The driver of a comparison: takes both snapshots, adds up both sides, and goes down to the rows where they differ.

::

    tables of both sides ─► snapshots at one point ─► sums of ranges ─► rows of buckets that differ
      ─► values of some of these rows

Nothing is written but the ledger's row. A comparison that is killed, or loses a connection, leaves nothing, and is
started again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from kainite.base.errors import StoppedError
from kainite.replicate.known_rows import Explanation
from kainite.replicate.row_merge import BucketSums, RowDifference, differing_buckets
from kainite.replicate.same_point import PointRequest, SamePoint, same_point
from kainite.replicate.verify_ledger import VerifyLedger, VerifySession
from kainite.replicate.verify_report import RowReport, TableReport, VerifyReport
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.verify.compare_source import ComparableTable, ComparePlan, CompareSource, Comparison
from kainite_spark.verify.tasks import BucketsItem, BucketsRows, ExplainedRow, RangeItem, RangeSums, Side

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
        source: the source, and its way of being compared.
        connection: a session with the target, in autocommit mode, of this job alone.
        catalogue: the target's tables.
        only: tables that are compared; empty: all.
        most_rows: most rows that are shown.
        wait: seconds for which the apply job is waited for.
        stop: set to end the comparison.
        look: called now and then, for progress.
        before: called under the snapshots, before anything is compared.
    """

    source: CompareSource
    connection: VerifySession
    catalogue: Catalogue
    only: Sequence[str] = ()
    most_rows: int = 100
    wait: float = 600.0
    stop: threading.Event = field(default_factory=threading.Event)
    look: Callable[[VerifyProgress], None] = lambda _: None
    before: Callable[[], None] = lambda: None
    _progress: VerifyProgress = field(default_factory=VerifyProgress)
    _wire_bytes: int = 0

    def run(self) -> VerifyReport:
        """Compares; returns what was found.

        Raises:
            SettingsError: ``only`` names a table that is not read.
            SourceError: the source refused, does not answer, or a transaction is in the way of the point.
            TargetError: another comparison runs, or no apply job came to the point in time.
            TargetUnavailableError: the target does not answer.
            SparkUnavailableError: a Spark job failed.
            StoppedError: ``stop`` was set.
        """
        began = time.monotonic()
        plan = self.source.plan(self.catalogue, self.only)
        ledger = VerifyLedger(self.connection, self.source.ends.log_partition, self.stop)
        ledger.begin()
        request = PointRequest(plan.points, plan.target, self.wait, self.stop, self._wait)
        with same_point(request, ledger) as point:
            self.before()
            ready, left_out = _ready(plan, point)
            comparison = plan.at(point, ready, self.catalogue, self.most_rows)
            reports, rows = self._compare([plan.tables[place] for place in ready], comparison)
        ended = datetime.now(UTC).isoformat(timespec="seconds")
        report = VerifyReport(ended, plan.points.shown(point.place), reports, rows, left_out, point.units,
                              time.monotonic() - began, ledger.held_ms(), self._wire_bytes)  # fmt: skip
        if not self.only:
            ledger.note(report.outcome())
        return report

    def _compare(
        self, tables: Sequence[ComparableTable], comparison: Comparison
    ) -> tuple[tuple[TableReport, ...], tuple[RowReport, ...]]:
        sums = self._sums(tables, comparison)
        buckets = list(_buckets(sums, comparison.parallelism))
        found = self._rows(buckets, comparison) if buckets else []
        rows = tuple(comparison.reports(self._shown(found)))
        reports = tuple(_report(place, table, sums[place], found) for place, table in enumerate(tables))
        return reports, rows

    def _sums(self, tables: Sequence[ComparableTable], comparison: Comparison) -> list[Mapping[Side, BucketSums]]:
        """Returns the sums of each table, the largest of which is read first."""
        self._progress.doing = "adding up"
        sums: list[Mapping[Side, BucketSums]] = [{side: BucketSums() for side in Side} for _ in tables]
        order = sorted(range(len(tables)), key=lambda place: -tables[place].bytes)
        items = [item for place in order for item in comparison.ranges(place)]
        for result in self._run(items, comparison):
            assert isinstance(result, RangeSums)
            sums[result.item.table][result.item.side].add(result.sums)
            self._progress.rows += sum(count for _, count, _ in result.sums)
        return sums

    def _rows(self, items: list[BucketsItem], comparison: Comparison) -> list[BucketsRows]:
        self._progress.doing = "looking for the rows that differ"
        return [result for result in self._run(items, comparison) if isinstance(result, BucketsRows)]

    def _run(
        self, items: Sequence[RangeItem] | Sequence[BucketsItem], comparison: Comparison
    ) -> Iterator[RangeSums | BucketsRows]:
        self._progress.done, self._progress.items = 0, len(items)
        for first in range(0, len(items), ITEMS_A_JOB):
            for result in comparison.run(items[first : first + ITEMS_A_JOB], self._tell):
                self._wire_bytes += result.wire_bytes
                self._progress.done += 1
                yield result
            self._tell()

    def _shown(self, found: Sequence[BucketsRows]) -> Sequence[tuple[int, ExplainedRow]]:
        """Returns the rows that are shown, those that no unit explains first, each with its table's place."""
        order = list(Explanation)
        rows = [(part.item.table, row) for part in found for row in part.rows]
        rows.sort(key=lambda one: order.index(one[1].why))
        return rows[: self.most_rows]

    def _wait(self, what: str) -> None:
        self._progress.doing = what
        self._tell()

    def _tell(self) -> None:
        if self.stop.is_set():
            raise StoppedError("the comparison was stopped")
        self.look(self._progress)


def _ready(plan: ComparePlan, point: SamePoint) -> tuple[list[int], dict[str, str]]:
    """Returns the places of the tables that are as of the point, and which are left out."""
    unready = {f"{schema}.{name}": why for (schema, name), why in point.unready.items()}
    late = {table.name: unready[table.name] for table in plan.tables if table.name in unready}
    return [place for place, table in enumerate(plan.tables) if table.name not in late], plan.left_out | late


def _buckets(sums: Sequence[Mapping[Side, BucketSums]], parallelism: int) -> Iterator[BucketsItem]:
    """Yields the buckets that differ, as many together as one task compares."""
    for place, sides in enumerate(sums):
        differing = differing_buckets(sides[Side.SOURCE], sides[Side.TARGET])
        rows = sum(differing.values())
        items = min(max(parallelism, -(-rows // ROWS_OF_AN_ITEM)), len(differing), -(-rows // ROWS_ALONE))
        for first in range(items):
            yield BucketsItem(place, frozenset(list(differing)[first::items]))


def _report(
    place: int, table: ComparableTable, sums: Mapping[Side, BucketSums], found: Sequence[BucketsRows]
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
