"""What a comparison needs of its source, whatever kind of database that is; and PostgreSQL as one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import psycopg

from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S
from kainite.replicate.compared_tables import ComparedTable, values_query
from kainite.replicate.ends import LoadEnds, ReplicaEnds
from kainite.replicate.ends_compared import tables_to_compare
from kainite.replicate.page_ranges import pages_of_a_range
from kainite.replicate.point_source import PointSource, PostgresPoints
from kainite.replicate.point_target import PointTarget, PostgresPointTarget
from kainite.replicate.row_merge import RowDifference
from kainite.replicate.same_point import SamePoint
from kainite.replicate.verify_report import RowReport
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.verify.runners import ItemRunner, VerifyItem, VerifyResult
from kainite_spark.verify.tasks import (
    ExplainedRow,
    RangeItem,
    Side,
    Snapshots,
    VerifyTask,
    failure_of,
    key_of,
    side_of,
)


class ComparableTable(Protocol):
    """A table of both databases."""

    @property
    def name(self) -> str:
        """Returns its name, as it is shown."""

    @property
    def bytes(self) -> int:
        """Returns the size of both sides."""


class Comparison(Protocol):
    """Both sides at one point. A table is named by its place among those that are compared."""

    @property
    def parallelism(self) -> int:
        """Returns how many items run at once."""

    def ranges(self, table: int) -> Iterator[RangeItem]:
        """Yields the ranges of a table, both sides in turn."""

    def run(self, items: Sequence[VerifyItem], look: Callable[[], None]) -> list[VerifyResult]:
        """Returns the results of items; as :meth:`kainite_spark.verify.runners.ItemRunner.run`."""

    def reports(self, rows: Sequence[tuple[int, ExplainedRow]]) -> Iterator[RowReport]:
        """Yields rows of tables with the values of both sides.

        Raises:
            SourceError, TargetUnavailableError: a side did not answer.
        """


class ComparePlan(Protocol):
    """A comparison that has no point yet."""

    @property
    def tables(self) -> Sequence[ComparableTable]:
        """Returns the tables that can be compared."""

    @property
    def left_out(self) -> dict[str, str]:
        """Returns the tables that cannot be compared, with the reason."""

    @property
    def target(self) -> PointTarget:
        """Returns what takes the target's snapshot, with its tables locked against being written anew."""

    @property
    def points(self) -> PointSource:
        """Returns what makes the source's snapshot."""

    def at(self, point: SamePoint, ready: Sequence[int], catalogue: Catalogue, most_rows: int) -> Comparison:
        """Returns the comparison at a point.

        Args:
            point: both snapshots, which must last.
            ready: the places of the tables that are compared.
            catalogue: the target's tables.
            most_rows: most differing rows that an item gives.
        """


class CompareSource(Protocol):
    """A source, and the way in which its rows are compared with those of its target."""

    @property
    def ends(self) -> LoadEnds:
        """Returns source and target."""

    def plan(self, catalogue: Catalogue, only: Sequence[str]) -> ComparePlan:
        """Looks at both databases.

        Args:
            catalogue: the target's tables.
            only: tables that are compared; empty: all.

        Raises:
            SettingsError: ``only`` names a table that is not read.
            SourceError: the source does not answer, or nothing of it is read.
            TargetUnavailableError: the target does not answer.
        """


@dataclass(frozen=True, slots=True)
class PostgresCompareSource:
    """Implements :class:`CompareSource` with exported snapshots, and hashes that the servers make.

    Attributes:
        ends: source and target.
        runner: given the size of all tables, returns what runs the items.
        lock_wait: seconds to wait for open transactions of the source.
    """

    ends: ReplicaEnds
    runner: Callable[[int], ItemRunner]
    lock_wait: float = LOCK_WAIT_S

    def plan(self, catalogue: Catalogue, only: Sequence[str]) -> _PostgresPlan:
        tables, left_out = tables_to_compare(self.ends, only)
        oids = [part.oid for table in tables for part in table.source.parts]
        return _PostgresPlan(tables, left_out, PostgresPoints(self.ends, oids, self.lock_wait), self.runner)


@dataclass(frozen=True, slots=True)
class _PostgresPlan:
    """Implements :class:`ComparePlan`."""

    tables: Sequence[ComparedTable]
    left_out: dict[str, str]
    points: PostgresPoints
    runner: Callable[[int], ItemRunner]

    @property
    def target(self) -> PostgresPointTarget:
        locked = [part.sql for table in self.tables for part in table.target.parts]
        return PostgresPointTarget(self.points.ends.target, self.points.ends.log_partition, locked)

    def at(self, point: SamePoint, ready: Sequence[int], catalogue: Catalogue, most_rows: int) -> _PostgresComparison:
        tables = tuple(self.tables[place] for place in ready)
        task = VerifyTask(self.points.ends, point, tables, catalogue, most_rows)
        return _PostgresComparison(task, self.runner(sum(table.bytes for table in tables)))


@dataclass(frozen=True, slots=True)
class _PostgresComparison:
    """Implements :class:`Comparison`."""

    task: VerifyTask
    runner: ItemRunner

    @property
    def parallelism(self) -> int:
        return self.runner.parallelism

    def ranges(self, table: int) -> Iterator[RangeItem]:
        for side in Side:
            one = side_of(self.task.tables[table], side)
            pages = pages_of_a_range([one], self.parallelism)
            yield from (RangeItem(table, side, pages) for pages in one.ranges(pages))

    def run(self, items: Sequence[VerifyItem], look: Callable[[], None]) -> list[VerifyResult]:
        return self.runner.run(self.task, items, look)

    def reports(self, rows: Sequence[tuple[int, ExplainedRow]]) -> Iterator[RowReport]:
        with Snapshots(self.task.places) as snapshots:
            for table, row in rows:
                yield _valued(self.task.tables[table], row, snapshots)


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
    named = dict(zip(table.key_columns, key, strict=True))
    shown = [place for place in range(len(table.columns)) if ours is None or its is None or ours[place] != its[place]]
    return row_report(table.name, named, found, table.columns, shown, ours, its)


def row_report(
    table: str,
    key: dict[str, str],
    found: ExplainedRow,
    columns: Sequence[str],
    shown: Sequence[int],
    ours: Sequence[str | None] | None,
    its: Sequence[str | None] | None,
) -> RowReport:
    """Returns how a row is reported.

    Args:
        table, key: which row.
        found: how it differs.
        columns: the names of the table's columns.
        shown: the places of those that are shown.
        ours, its: the texts of the source's row and of the target's; None where a side has none.
    """
    return RowReport(
        table,
        key,
        found.row.how,
        found.why,
        found.row.times,
        tuple(columns[place] for place in shown),
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
