"""Tells how far a target's load has come, from its ledger: states of tables, rows, bytes, time left.

Text and JSON are two views of one :class:`ReplicaStatus`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import psycopg
from psycopg.rows import namedtuple_row

from kainite.base.words import counted
from kainite.capture.places import format_place
from kainite.replicate.findings import CheckFinding
from kainite.replicate.found_load import FoundLoad
from kainite.replicate.ledger import STATEMENT_STAGE, LoadState
from kainite.replicate.load_ledger import found_load
from kainite.replicate.table_ledger import FOREIGN_KEYS_LEFT, READ_ALL, OwnLoadState, names_begin
from kainite.replicate.verify_ledger import VerifyOutcome, latest_outcome

_TABLES: Final = f"""
    SELECT table_schema AS schema, table_name AS name, count(*) AS ranges, count(done_at) AS ranges_done,
           coalesce(sum(rows), 0)::bigint AS rows, coalesce(sum(bytes), 0)::bigint AS bytes, max(cause) AS cause
    FROM kainite_load_step WHERE log_partition = %s AND stage < {STATEMENT_STAGE} GROUP BY 1, 2 ORDER BY 1, 2"""
_OWN_TABLES: Final = _TABLES.replace("log_partition = %s", "starts_with(log_partition, %s)")
_ARE_THERE: Final = "SELECT to_regclass('kainite_load_foreign_key') IS NOT NULL"
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
    CATCHING_UP = "catching up"  # what was held of it meanwhile is applied; a table that is loaded by itself
    FAILED = "failed"
    GIVEN_UP = "given up"  # too much was held of it: nothing but a reload mends it
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
        held: of how many units deltas of the table are held until it is live.
        position: as of which LSN it is copied by itself; None where it is not, or before that is known.
    """

    table: str
    state: TableState
    ranges: int
    ranges_done: int
    rows: int
    bytes: int
    cause: str | None
    held: int = 0
    position: str | None = None


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
        foreign_keys: foreign keys that are off until the tables that are loaded by themselves are live.
        seconds: how long the load has run.
        seconds_left: how long it will run at the speed so far; None where that is not known.
        tables: the tables.
        verified: the latest result of a comparison with the source; None where there is none.
        standbys: what a promotion of each standby of the source would do, where it was asked.
        gaps: tables of which changes are missing, where the extraction's offset was asked.
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
    foreign_keys: tuple[str, ...] = ()
    seconds: float | None = None
    seconds_left: float | None = None
    tables: tuple[TableStatus, ...] = ()
    verified: VerifyOutcome | None = None
    standbys: tuple[CheckFinding, ...] = ()
    gaps: tuple[CheckFinding, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Returns the status as it is printed with ``--json``."""
        return asdict(self)


def status_of(connection: psycopg.Connection, log_partition: str) -> ReplicaStatus:
    """Returns the status of a target.

    Args:
        connection: a session with the target.
        log_partition: the log's name there.
    """
    load, verified = found_load(connection, log_partition), latest_outcome(connection, log_partition)
    if load is None:
        return ReplicaStatus(None, consistent=False, verified=verified)
    cursor: psycopg.Cursor[Any] = connection.cursor(row_factory=namedtuple_row)
    rows = cursor.execute(_TABLES.encode(), (log_partition,)).fetchall()
    keys: Any = cursor.execute(_STATEMENTS.encode(), (log_partition,)).fetchone()
    loaded = {f"{row.schema}.{row.name}": copied_table(load.state, *row) for row in rows}
    own = _own_tables(connection, log_partition, load.source)
    tables = tuple(value for _, value in sorted((loaded | own).items()))
    foreign_keys = _foreign_keys(connection, log_partition)
    found = status_with(load, tables, keys.statements, keys.done, keys.refused)
    return replace(
        found,
        refused=(*found.refused, *(f"{name}: {cause}" for name, cause in foreign_keys if cause)),
        foreign_keys=tuple(name for name, _ in foreign_keys),
        verified=verified,
    )


def status_with(
    load: FoundLoad, tables: Sequence[TableStatus], statements: int, statements_done: int, refused: Sequence[str]
) -> ReplicaStatus:
    """Returns the status of a target that has a load.

    Args:
        load: the load.
        tables: its tables.
        statements, statements_done: how many statements, or checks, follow behind the rows, and how many are done.
        refused: those that the target has refused, with the causes.
    """
    ranges, done = sum(table.ranges for table in tables), sum(table.ranges_done for table in tables)
    seconds = None if load.state is LoadState.PREPARED else _seconds(load)
    return ReplicaStatus(
        load.state,
        consistent=load.state in _AFTER_THE_LOAD and all(table.state is TableState.LIVE for table in tables),
        position=None if load.position is None else format_place(load.position, load.source),
        source=load.source,
        began_at=_iso(load.began_ms),
        live_at=None if load.live_ms is None else _iso(load.live_ms),
        ranges=ranges,
        ranges_done=done,
        rows=sum(table.rows for table in tables),
        bytes=sum(table.bytes for table in tables),
        statements=statements,
        statements_done=statements_done,
        refused=tuple(refused),
        seconds=seconds,
        seconds_left=_left(load.state, ranges, done, seconds),
        tables=tuple(tables),
    )


def _own_tables(connection: psycopg.Connection, log_partition: str, source: str | None) -> dict[str, TableStatus]:
    """Returns the tables that were loaded by themselves, or are being, by their names."""
    if not _has_own_loads(connection):
        return {}
    cursor: psycopg.Cursor[Any] = connection.cursor(row_factory=namedtuple_row)
    begin = names_begin(log_partition)
    steps = {(row.schema, row.name): row for row in cursor.execute(_OWN_TABLES.encode(), (begin,)).fetchall()}
    return {
        f"{row.schema}.{row.name}": _own_table(row, steps.get((row.schema, row.name)), source)
        for row in cursor.execute(READ_ALL, (log_partition,)).fetchall()
        if row.state != OwnLoadState.LIVE or (row.schema, row.name) in steps
    }


def _own_table(row: Any, steps: Any, source: str | None) -> TableStatus:
    name, state = f"{row.schema}.{row.name}", TableState(row.state)
    position = None if row.position is None else format_place(row.position, source)
    if steps is None:
        return TableStatus(name, state, 0, 0, 0, 0, row.cause, row.held, position)
    done, copied = steps.ranges_done, steps.rows
    return TableStatus(name, state, steps.ranges, done, copied, steps.bytes, row.cause, row.held, position)


def _foreign_keys(connection: psycopg.Connection, log_partition: str) -> list[tuple[str, str | None]]:
    if not _has_own_loads(connection):
        return []
    return connection.execute(FOREIGN_KEYS_LEFT, (log_partition,)).fetchall()


def _has_own_loads(connection: psycopg.Connection) -> bool:
    row = connection.execute(_ARE_THERE).fetchone()
    return row is not None and bool(row[0])


def one_line(status: ReplicaStatus) -> str:
    """Returns the progress of a load in one line."""
    if status.state is None:
        return "not loaded"
    told = f"{status.state}: {status.ranges_done} of {counted(status.ranges, 'range')}, {counted(status.rows, 'row')}, "
    told += f"{status.bytes / 2**20:,.1f} MiB"
    if status.statements:
        told += f", {status.statements_done} of {status.statements} keys and indexes"
    not_live = [table for table in status.tables if table.state is not TableState.LIVE]
    if not_live and status.state is LoadState.LIVE:
        told += f", {len(not_live)} of {counted(len(status.tables), 'table')} not live"
    if status.seconds is not None:
        told += f" in {status.seconds:.0f} s"
    return told if status.seconds_left is None else f"{told}, about {status.seconds_left:.0f} s left"


def _left(state: LoadState, ranges: int, done: int, seconds: float | None) -> float | None:
    """Returns the seconds that are left for the ranges; keys and indexes come on top."""
    if state is not LoadState.LOADING or not done or seconds is None:
        return None
    return seconds * (ranges - done) / done


def copied_table(
    load: LoadState, schema: str, name: str, ranges: int, done: int, rows: int, size: int, cause: str | None
) -> TableStatus:
    """Returns the status of a table that the load of everything copies.

    Args:
        load: the load's state.
        schema, name: its name.
        ranges, done: how many ranges of rows it has, and how many of them are copied.
        rows, size: the rows and bytes that are copied.
        cause: why a range was refused; None where none was.
    """
    return TableStatus(f"{schema}.{name}", _state(ranges, done, cause, load), ranges, done, rows, size, cause)


def _state(ranges: int, done: int, cause: str | None, load: LoadState) -> TableState:
    if load in _AFTER_THE_LOAD:
        return TableState.LIVE
    if cause is not None:
        return TableState.FAILED
    if ranges == done:
        return TableState.COPIED
    return TableState.LOADING if done else TableState.WAITING


def _seconds(load: FoundLoad) -> float:
    return ((load.now_ms if load.live_ms is None else load.live_ms) - load.began_ms) / 1000


def _iso(epoch_ms: int) -> str:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC).isoformat(timespec="seconds")
