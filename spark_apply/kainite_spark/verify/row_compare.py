"""The comparison where MariaDB is one of the ends: threads of this process read and hash both sides.

A comparison that is killed leaves nothing: its sessions end with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from kainite.capture.mysql.snapshot_session import SnapshotSession
from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_points import BinlogPoints
from kainite.replicate.ends import ReplicaEnds, is_mariadb
from kainite.replicate.mariadb_point_target import MariadbPointTarget
from kainite.replicate.paired_ends import paired_tables_to_compare
from kainite.replicate.paired_rows import MariadbRows, PairedRows, PostgresRows
from kainite.replicate.point_source import PostgresPoints
from kainite.replicate.point_target import PostgresPointTarget
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.same_point import SamePoint
from kainite.replicate.verify_report import RowReport
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.verify.compare_source import row_report
from kainite_spark.verify.row_tasks import (
    MariadbReader,
    PostgresReader,
    RowReader,
    RowTask,
    key_texts,
    of_side,
    run_row_items,
)
from kainite_spark.verify.runners import THREADS, VerifyItem, VerifyResult, run_in_threads
from kainite_spark.verify.tasks import ExplainedRow, RangeItem, Side, SnapshotPlace, Snapshots

RowPoints: TypeAlias = BinlogPoints | PostgresPoints
RowTarget: TypeAlias = MariadbPointTarget | PostgresPointTarget


@dataclass(frozen=True, slots=True)
class RowCompareSource:
    """Implements :class:`kainite_spark.verify.compare_source.CompareSource`.

    Attributes:
        ends: source and target.
        parallelism: how many threads read.
        lock_wait: seconds to wait for open transactions of a PostgreSQL source.
    """

    ends: ReplicaEnds | BinlogEnds
    parallelism: int = THREADS
    lock_wait: float = LOCK_WAIT_S

    def plan(self, catalogue: Catalogue, only: Sequence[str]) -> _RowPlan:
        found = paired_tables_to_compare(self.ends, catalogue, only)
        locked = [name for table in found.tables for name in table.target.sql]
        url, log = self.ends.target, self.ends.log_partition
        target = (
            MariadbPointTarget(url, log, locked, self.parallelism)
            if is_mariadb(url)
            else PostgresPointTarget(url, log, locked)
        )
        return _RowPlan(found.tables, found.left_out, self._points(found.tables), target, self.parallelism)

    def _points(self, tables: Sequence[PairedRows]) -> RowPoints:
        sides = [table.source for table in tables]
        if isinstance(self.ends, BinlogEnds):
            ours = [side.table for side in sides if isinstance(side, MariadbRows)]
            return BinlogPoints(self.ends, ours, self.parallelism)
        oids = [part.oid for side in sides if isinstance(side, PostgresRows) for part in side.table.parts]
        return PostgresPoints(self.ends, oids, self.lock_wait)


@dataclass(frozen=True, slots=True)
class _RowPlan:
    """Implements :class:`kainite_spark.verify.compare_source.ComparePlan`."""

    tables: Sequence[PairedRows]
    left_out: dict[str, str]
    points: RowPoints
    target: RowTarget
    parallelism: int

    def at(self, point: SamePoint, ready: Sequence[int], catalogue: Catalogue, most_rows: int) -> _RowComparison:
        tables = tuple(self.tables[place] for place in ready)
        places: dict[Side, SnapshotPlace] = {}
        held: dict[Side, Sequence[SnapshotSession]] = {}
        if isinstance(self.points, BinlogPoints):
            held[Side.SOURCE] = self.points.sessions
        else:
            places[Side.SOURCE] = self.points.ends.source.url, point.source
        if isinstance(self.target, MariadbPointTarget):
            held[Side.TARGET] = self.target.sessions
        else:
            places[Side.TARGET] = self.target.url, point.target
        task = RowTask(point.units, tables, catalogue, most_rows)
        return _RowComparison(task, places, held, self.parallelism)


@dataclass(frozen=True, slots=True)
class _RowComparison:
    """Implements :class:`kainite_spark.verify.compare_source.Comparison`.

    Attributes:
        task: what all threads have in common.
        places: the snapshots of sides that are PostgreSQL.
        held: sessions under the snapshot of sides that are MariaDB, one a thread.
        parallelism: how many threads read.
    """

    task: RowTask
    places: Mapping[Side, SnapshotPlace]
    held: Mapping[Side, Sequence[SnapshotSession]]
    parallelism: int

    def ranges(self, table: int) -> Iterator[RangeItem]:
        one = self.task.tables[table]
        for side in Side:
            yield from (RangeItem(table, side, rows) for rows in of_side(one, side).ranges())

    def run(self, items: Sequence[VerifyItem], look: Callable[[], None]) -> list[VerifyResult]:
        workers = [partial(self._read, thread) for thread in range(self.parallelism)]
        return run_in_threads(workers, items, look)

    def reports(self, rows: Sequence[tuple[int, ExplainedRow]]) -> Iterator[RowReport]:
        for table, row in rows:
            yield _report(self.task.tables[table], row)

    def _read(self, thread: int, items: Iterator[VerifyItem]) -> Iterator[VerifyResult]:
        with self._readers(thread) as readers:
            yield from run_row_items(self.task, readers, items)

    @contextmanager
    def _readers(self, thread: int) -> Iterator[Mapping[Side, RowReader]]:
        """Gives what reads both sides in a thread."""
        with Snapshots(self.places) as snapshots:
            yield {
                side: MariadbReader(self.held[side][thread], side)
                if side in self.held
                else PostgresReader(snapshots, side)
                for side in Side
            }


def _report(table: PairedRows, found: ExplainedRow) -> RowReport:
    """Returns a row with the values of both sides, of all columns where one side has no such row."""
    ours, its = found.source, found.target
    canonical = table.canonical()
    shown = list(range(len(table.columns)))
    if found.row.how is RowDifference.CHANGED and ours is not None and its is not None:
        one, other = canonical(ours), canonical(its)
        shown = [place for place in shown if one[place] != other[place]]
    return row_report(table.name, key_texts(table, found.row.key), found, table.columns, shown, ours, its)
