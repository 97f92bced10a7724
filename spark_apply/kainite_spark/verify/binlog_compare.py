"""MariaDB as the source of a comparison, whose target is PostgreSQL: threads of this process read and hash both sides.

A comparison that is killed leaves nothing: its sessions end with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from kainite.replicate.binlog_compared import KeyRange, PairedRows
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_ends_compared import binlog_tables_to_compare
from kainite.replicate.binlog_points import BinlogPoints
from kainite.replicate.page_ranges import MOST_PAGES
from kainite.replicate.point_target import PostgresPointTarget
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.same_point import SamePoint
from kainite.replicate.verify_report import RowReport
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.verify.binlog_tasks import BinlogVerifyTask, key_texts, run_binlog_items
from kainite_spark.verify.compare_source import row_report
from kainite_spark.verify.runners import THREADS, VerifyItem, VerifyResult, run_in_threads
from kainite_spark.verify.tasks import ExplainedRow, RangeItem, Side


@dataclass(frozen=True, slots=True)
class BinlogCompareSource:
    """Implements :class:`kainite_spark.verify.compare_source.CompareSource`.

    Attributes:
        ends: source and target.
        parallelism: how many threads read.
    """

    ends: BinlogEnds
    parallelism: int = THREADS

    def plan(self, catalogue: Catalogue, only: Sequence[str]) -> _BinlogPlan:
        found = binlog_tables_to_compare(self.ends, catalogue, only)
        points = BinlogPoints(self.ends, [table.source for table in found.tables], self.parallelism)
        return _BinlogPlan(found.tables, found.left_out, found.ranges, points)


@dataclass(frozen=True, slots=True)
class _BinlogPlan:
    """Implements :class:`kainite_spark.verify.compare_source.ComparePlan`."""

    tables: Sequence[PairedRows]
    left_out: dict[str, str]
    source_ranges: Mapping[str, Sequence[KeyRange]]
    points: BinlogPoints

    @property
    def target(self) -> PostgresPointTarget:
        locked = [part.sql for table in self.tables for part in table.target.parts]
        return PostgresPointTarget(self.points.ends.target, self.points.ends.log_partition, locked)

    def at(self, point: SamePoint, ready: Sequence[int], catalogue: Catalogue, most_rows: int) -> _BinlogComparison:
        tables = tuple(self.tables[place] for place in ready)
        task = BinlogVerifyTask(self.points.ends.target, point, tables, catalogue, most_rows)
        return _BinlogComparison(task, self.source_ranges, self.points)


@dataclass(frozen=True, slots=True)
class _BinlogComparison:
    """Implements :class:`kainite_spark.verify.compare_source.Comparison`."""

    task: BinlogVerifyTask
    source_ranges: Mapping[str, Sequence[KeyRange]]
    points: BinlogPoints

    @property
    def parallelism(self) -> int:
        return len(self.points.sessions)

    def ranges(self, table: int) -> Iterator[RangeItem]:
        one = self.task.tables[table]
        yield from (RangeItem(table, Side.SOURCE, rows) for rows in self.source_ranges[one.name])
        yield from (RangeItem(table, Side.TARGET, rows) for rows in one.target_ranges(MOST_PAGES))

    def run(self, items: Sequence[VerifyItem], look: Callable[[], None]) -> list[VerifyResult]:
        workers = [partial(run_binlog_items, self.task, session) for session in self.points.sessions]
        return run_in_threads(workers, items, look)

    def reports(self, rows: Sequence[tuple[int, ExplainedRow]]) -> Iterator[RowReport]:
        for table, row in rows:
            yield _report(self.task.tables[table], row)


def _report(table: PairedRows, found: ExplainedRow) -> RowReport:
    """Returns a row with the values of both sides, of all columns where one side has no such row."""
    ours, its = found.source, found.target
    canonical = table.canonical()
    shown = list(range(len(table.columns)))
    if found.row.how is RowDifference.CHANGED and ours is not None and its is not None:
        one, other = canonical(ours), canonical(its)
        shown = [place for place in shown if one[place] != other[place]]
    return row_report(table.name, key_texts(table, found.row.key), found, table.columns, shown, ours, its)
