"""What the tasks of a comparison do: add up the rows of a range, and compare the rows of buckets that differ.

A task reads alone, under the snapshots of the comparison, so it may be run again, or twice. It keeps its sessions for
all items that it gets.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

import psycopg
from psycopg import sql

from kainite.base.errors import KainiteError, SourceError, TargetUnavailableError
from kainite.base.redaction import redacted
from kainite.replicate.compared_tables import ComparedSide, ComparedTable, rows_query, sums_query
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.known_rows import Explanation, KnownRows
from kainite.replicate.page_ranges import RowRange
from kainite.replicate.row_merge import DifferingRow, RowDifference, RowHash, differing_rows
from kainite.replicate.same_point import SamePoint
from kainite.targets.postgresql.connection import connect
from kainite.targets.postgresql.text_forms import as_local_settings
from kainite.uow.catalogue.tables import Catalogue

_FETCHED_AT_ONCE = 10_000
_SETTINGS = f"""
    SELECT {as_local_settings()}, set_config('search_path', '', true), set_config('statement_timeout', '0', true),
           set_config('idle_in_transaction_session_timeout', '0', true)"""


class Side(StrEnum):
    """One of the two databases."""

    SOURCE = "source"
    TARGET = "target"


SnapshotPlace: TypeAlias = tuple[str, str]
"""The URL of a PostgreSQL database, and the name of its snapshot."""


@dataclass(frozen=True, slots=True)
class VerifyTask:
    """What all tasks of a comparison have in common.

    Attributes:
        ends: source and target.
        point: their snapshots, and the units that are not applied.
        tables: the tables that are compared.
        catalogue: the target's tables.
        most_rows: most differing rows that a task gives of its item.
    """

    ends: ReplicaEnds = field(repr=False)
    point: SamePoint
    tables: tuple[ComparedTable, ...]
    catalogue: Catalogue
    most_rows: int

    @property
    def places(self) -> dict[Side, SnapshotPlace]:
        """Returns where the snapshots are."""
        return {
            Side.SOURCE: (self.ends.source.url, self.point.source),
            Side.TARGET: (self.ends.target, self.point.target),
        }


@dataclass(frozen=True, slots=True)
class RangeItem:
    """A range of rows of one side whose hashes are to be added up; ``table`` is a place in the task's tables."""

    table: int
    side: Side
    rows: RowRange


@dataclass(frozen=True, slots=True)
class BucketsItem:
    """Buckets of a table whose rows are to be compared; ``table`` is a place in the task's tables."""

    table: int
    buckets: frozenset[int]


@dataclass(frozen=True, slots=True)
class RangeSums:
    """The buckets of a range.

    Attributes:
        item: the range.
        sums: each bucket's number, count of rows and sum of hashes.
        wire_bytes: how many bytes of values came from the server.
    """

    item: RangeItem
    sums: tuple[tuple[int, int, int], ...]
    wire_bytes: int


@dataclass(frozen=True, slots=True)
class ExplainedRow:
    """A row that differs.

    Attributes:
        row: how it differs.
        why: whether a unit that is not applied explains that.
        source, target: the texts of its columns on either side, where they were read with it.
    """

    row: DifferingRow
    why: Explanation
    source: tuple[str | None, ...] | None = None
    target: tuple[str | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class BucketsRows:
    """The rows that differ in some buckets.

    Attributes:
        item: the buckets.
        counts: how many rows differ in which way, and why.
        rows: some of them, those that no unit explains first.
        wire_bytes: how many bytes of values came from the servers.
    """

    item: BucketsItem
    counts: Counter[tuple[RowDifference, Explanation]]
    rows: tuple[ExplainedRow, ...]
    wire_bytes: int


def run_items(task: VerifyTask, items: Iterable[RangeItem | BucketsItem]) -> Iterator[RangeSums | BucketsRows]:
    """Yields the results of items.

    Raises:
        SourceError: the source did not answer, or its snapshot is gone.
        TargetUnavailableError: the same of the target.
    """
    with Snapshots(task.places) as snapshots:
        for item in items:
            yield _sums(task, item, snapshots) if isinstance(item, RangeItem) else _rows(task, item, snapshots)


class Snapshots:
    """Sessions with PostgreSQL databases under their snapshots, each opened when it is needed.

    Args:
        places: where the snapshots are.
    """

    def __init__(self, places: Mapping[Side, SnapshotPlace]) -> None:
        self._places = places
        self._open: dict[Side, psycopg.Connection] = {}
        self._closing = ExitStack()

    def __enter__(self) -> Snapshots:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def session(self, side: Side) -> psycopg.Connection:
        """Returns the session with a side; raises psycopg.Error."""
        if side not in self._open:
            url, snapshot = self._places[side]
            connection = connect(url, "kainite verify")
            self._closing.callback(connection.close)
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
            connection.execute(_SETTINGS)
            self._open[side] = connection
        return self._open[side]


def failure_of(side: Side, error: psycopg.Error) -> KainiteError:
    """Returns what an error of a side's session means."""
    cause = redacted(" ".join(str(error).split()))
    if side is Side.SOURCE:
        return SourceError(f"the source: {cause}; start the comparison again")
    return TargetUnavailableError(f"the target: {cause}; start the comparison again")


def _sums(task: VerifyTask, item: RangeItem, snapshots: Snapshots) -> RangeSums:
    table = task.tables[item.table]
    query = sums_query(side_of(table, item.side), table.buckets, item.rows)
    try:
        found = snapshots.session(item.side).execute(query.encode()).fetchall()
    except psycopg.Error as error:
        raise failure_of(item.side, error) from None
    size = sum(len(str(value)) for row in found for value in row)
    return RangeSums(item, tuple((bucket, count, int(total)) for bucket, count, total in found), size)


def _rows(task: VerifyTask, item: BucketsItem, snapshots: Snapshots) -> BucketsRows:
    table = task.tables[item.table]
    sides = {side: _Streamed(table, item.buckets, side, snapshots) for side in Side}
    differing = differing_rows(sides[Side.SOURCE], sides[Side.TARGET], keyed=bool(table.key))
    known = KnownRows(task.point.units, task.catalogue)

    def explain(row: DifferingRow) -> Explanation:
        return known.explain(table.name, dict(zip(table.key_columns, key_of(table, row.key), strict=True)) or None)

    counts, rows = explained(differing, explain, task.most_rows)
    return BucketsRows(item, counts, rows, sum(side.wire_bytes for side in sides.values()))


def explained(
    differing: Iterable[DifferingRow], explain: Callable[[DifferingRow], Explanation], most: int
) -> tuple[Counter[tuple[RowDifference, Explanation]], tuple[ExplainedRow, ...]]:
    """Returns how many rows differ in which way, and why, and some of them, those that no unit explains first.

    Args:
        differing: the rows.
        explain: tells whether a unit that is not applied explains a row.
        most: how many rows are returned at most.
    """
    counts: Counter[tuple[RowDifference, Explanation]] = Counter()
    kept: dict[Explanation, list[ExplainedRow]] = {why: [] for why in Explanation}
    for row in differing:
        why = explain(row)
        counts[row.how, why] += row.times
        if len(kept[why]) < most:
            kept[why].append(ExplainedRow(row, why))
    rows = [row for why in (Explanation.NONE, Explanation.UNSURE, Explanation.KNOWN) for row in kept[why]]
    return counts, tuple(rows[:most])


def key_of(table: ComparedTable, text: str) -> tuple[str, ...]:
    """Returns the texts of a key's columns, of the text of a key; none for a table without a key."""
    if not table.key:
        return ()
    return (text,) if len(table.key) == 1 else tuple(json.loads(text))


def side_of(table: ComparedTable, side: Side) -> ComparedSide:
    """Returns a side of a table."""
    return table.source if side is Side.SOURCE else table.target


class _Streamed:
    """The rows of some buckets of one side, which the server sorts and keeps."""

    def __init__(self, table: ComparedTable, buckets: frozenset[int], side: Side, snapshots: Snapshots) -> None:
        self._query = rows_query(side_of(table, side), table.buckets, buckets).encode()
        self._side = side
        self._snapshots = snapshots
        self.wire_bytes = 0

    def __iter__(self) -> Iterator[RowHash]:
        try:
            with self._snapshots.session(self._side).cursor("kainite_rows") as cursor:
                cursor.itersize = _FETCHED_AT_ONCE
                for key_hash, key, row_hash in cursor.execute(self._query):
                    self.wire_bytes += 16 + len(key)
                    yield key_hash, key, row_hash
        except psycopg.Error as error:
            raise failure_of(self._side, error) from None
