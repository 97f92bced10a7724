"""Tells how far a target's load has come, from its ledger: states of tables, rows, bytes, time left.

Text and JSON are two views of one :class:`ReplicaStatus`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import psycopg
from psycopg.rows import namedtuple_row

from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.replicate.ledger import STATEMENT_STAGE, LoadState
from kainite.replicate.load_ledger import FoundLoad, found_load

_TABLES: Final = f"""
    SELECT table_schema AS schema, table_name AS name, count(*) AS ranges, count(done_at) AS ranges_done,
           coalesce(sum(rows), 0)::bigint AS rows, coalesce(sum(bytes), 0)::bigint AS bytes, max(cause) AS cause
    FROM kainite_load_step WHERE log_partition = %s AND stage < {STATEMENT_STAGE} GROUP BY 1, 2 ORDER BY 1, 2"""
_STATEMENTS: Final = f"""
    SELECT count(*) AS statements, count(done_at) AS done,
           coalesce(array_agg(table_schema || '.' || table_name || ': ' || cause ORDER BY step)
                    FILTER (WHERE cause IS NOT NULL), '{{}}') AS refused
    FROM kainite_load_step WHERE log_partition = %s AND stage >= {STATEMENT_STAGE}"""

_AFTER_THE_LOAD: Final = (LoadState.LIVE, LoadState.CUT_OVER)


class TableState(StrEnum):
    """The state of a table of the target."""

    WAITING = "waiting"
    LOADING = "loading"
    COPIED = "copied"  # keys and indexes are left
    FAILED = "failed"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table of a load.

    Attributes:
        table: its name, with its schema.
        state: its state.
        ranges, ranges_done: how many ranges of rows it has, and how many of them are copied.
        rows, bytes: what is copied.
        cause: why a step of it was refused; None where none was.
    """

    table: str
    state: TableState
    ranges: int
    ranges_done: int
    rows: int
    bytes: int
    cause: str | None


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """A target and its load.

    Attributes:
        state: the load's state; None where there is no load.
        consistent: whether the target is a state that the source had; after a cut-over, what it was then.
        position: the consistent point; None where there is none yet.
        source: the source, as ``system identifier/database``.
        began_at, live_at: when the load began, and when it was live, in ISO 8601.
        ranges, ranges_done, rows, bytes: sums over the tables.
        statements, statements_done: how many keys, indexes and the like ``init`` has left for behind the rows, and
            how many of them are made.
        refused: those that the target has refused, with the causes.
        seconds: how long the load has run.
        seconds_left: how long it will run at the speed so far; None where that is not known.
        tables: the tables.
    """

    state: LoadState | None
    consistent: bool
    position: str | None = None
    source: str | None = None
    began_at: str | None = None
    live_at: str | None = None
    ranges: int = 0
    ranges_done: int = 0
    rows: int = 0
    bytes: int = 0
    statements: int = 0
    statements_done: int = 0
    refused: tuple[str, ...] = ()
    seconds: float | None = None
    seconds_left: float | None = None
    tables: tuple[TableStatus, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Returns the status as it is printed with ``--json``."""
        return asdict(self)


def status_of(connection: psycopg.Connection, log_partition: str) -> ReplicaStatus:
    """Returns the status of a target.

    Args:
        connection: a session with the target.
        log_partition: the log's name there.
    """
    load = found_load(connection, log_partition)
    if load is None:
        return ReplicaStatus(None, consistent=False)
    cursor = connection.cursor(row_factory=namedtuple_row)
    rows = cursor.execute(_TABLES.encode(), (log_partition,)).fetchall()
    keys: Any = cursor.execute(_STATEMENTS.encode(), (log_partition,)).fetchone()
    tables = tuple(_table(row, load.state) for row in rows)
    ranges, done = sum(table.ranges for table in tables), sum(table.ranges_done for table in tables)
    seconds = None
    if load.state is not LoadState.PREPARED:
        seconds = _seconds(load)
    return ReplicaStatus(
        load.state,
        consistent=load.state in _AFTER_THE_LOAD,
        position=None if load.position is None else format_lsn(load.position),
        source=load.source,
        began_at=_iso(load.began_ms),
        live_at=None if load.live_ms is None else _iso(load.live_ms),
        ranges=ranges,
        ranges_done=done,
        rows=sum(table.rows for table in tables),
        bytes=sum(table.bytes for table in tables),
        statements=keys.statements,
        statements_done=keys.done,
        refused=tuple(keys.refused),
        seconds=seconds,
        seconds_left=_left(load.state, ranges, done, seconds),
        tables=tables,
    )


def one_line(status: ReplicaStatus) -> str:
    """Returns the progress of a load in one line."""
    if status.state is None:
        return "not loaded"
    told = f"{status.state}: {status.ranges_done} of {status.ranges} ranges, {status.rows:,} rows, "
    told += f"{status.bytes / 2**20:,.1f} MiB"
    if status.statements:
        told += f", {status.statements_done} of {status.statements} keys and indexes"
    if status.seconds is not None:
        told += f" in {status.seconds:.0f} s"
    return told if status.seconds_left is None else f"{told}, about {status.seconds_left:.0f} s left"


def _left(state: LoadState, ranges: int, done: int, seconds: float | None) -> float | None:
    """Returns the seconds that are left for the ranges; keys and indexes come on top."""
    if state is not LoadState.LOADING or not done or seconds is None:
        return None
    return seconds * (ranges - done) / done


def _table(row: Any, state: LoadState) -> TableStatus:
    return TableStatus(
        f"{row.schema}.{row.name}", _state(row, state), row.ranges, row.ranges_done, row.rows, row.bytes, row.cause
    )


def _state(row: Any, state: LoadState) -> TableState:
    if state in _AFTER_THE_LOAD:
        return TableState.LIVE
    if row.cause is not None:
        return TableState.FAILED
    if row.ranges == row.ranges_done:
        return TableState.COPIED
    return TableState.LOADING if row.ranges_done else TableState.WAITING


def _seconds(load: FoundLoad) -> float:
    return ((load.now_ms if load.live_ms is None else load.live_ms) - load.began_ms) / 1000


def _iso(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="seconds")
