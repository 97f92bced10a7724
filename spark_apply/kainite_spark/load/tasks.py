"""Does one step of a load into PostgreSQL: copies a range, or executes a statement, with its entry in the ledger.

A step is one transaction of the target (:mod:`kainite.replicate.ledger`)::

    end what was left of the step ─► hold the load ─► claim the step ─► copy, or execute ─► note it as done ─► commit

Rows stream from the one connection to the other, so that a step takes the memory of its largest row. Values go as text,
which both sessions spell and read in one way, whatever the servers' versions and settings are.

A step does not wait until its commit is on disk: a target that crashes may take the latest steps back, each with its
entry, and they are done again. What follows from all steps, the state *live*, is committed by the driver, which waits
for the disk, and so for all commits before its own (:mod:`kainite.replicate.ledger`).

Spark may run a task again, or twice. Errors are returned as data, as the apply job's tasks do it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Final, Protocol

import psycopg
from psycopg import errors, pq, sql

from kainite.base.redaction import redacted
from kainite.replicate import ledger
from kainite.replicate.ends import LoadEnds
from kainite.replicate.ledger import CopyStep, StatementStep, StepWork
from kainite.targets.postgresql.connection import connect
from kainite.targets.postgresql.text_forms import as_local_settings

_LOG = logging.getLogger(__name__)

LOCK_WAIT_S: Final = 30
"""Seconds for which a step waits for a lock in the target."""

_TAKE: Final = f"""
    WITH ended AS MATERIALIZED ({ledger.END_SESSIONS})
    SELECT set_config('application_name', %s, false), (SELECT count(*) FROM ended)"""
LONGEST_CAUSE: Final = 1000
_WRITTEN_AT_ONCE: Final = 256 * 1024
_SETTINGS: Final = f"SELECT {as_local_settings()}"
_OF_THE_SOURCE: Final = f"{_SETTINGS}, set_config('statement_timeout', '0', true), set_config('search_path', '', true)"
# The server ends a transaction whose client is silent for a minute; a statement under way is none.
_OF_THE_TARGET: Final = f"""{_SETTINGS},
           set_config('lock_timeout', '{LOCK_WAIT_S}s', true), set_config('synchronous_commit', 'off', true),
           set_config('idle_in_transaction_session_timeout', '60s', true), set_config('statement_timeout', '0', true)"""


class StepOutcome(Enum):
    """What became of a step."""

    DONE = "done"
    REFUSED = "refused"  # by the target or the source, for what it is
    FENCED = "fenced"  # another driver has taken over
    SNAPSHOT_LOST = "snapshot lost"
    AGAIN = "again"  # a connection was lost, or a lock was not to be had


@dataclass(frozen=True, slots=True)
class LoadStepResult:
    """The result of a step; ``cause`` is empty where it is done."""

    step: int
    outcome: StepOutcome
    cause: str = ""


class RowsOf(Protocol):
    """Reads rows from a source."""

    def __call__(self, work: CopyStep) -> AbstractContextManager[Iterator[bytes]]:
        """Gives the rows of a step's queries, in blocks, as ``COPY FROM`` reads them."""


@dataclass(frozen=True, slots=True)
class LoadTask:
    """What all tasks of a load have in common.

    Attributes:
        ends: source and target.
        generation: the load's.
        snapshot: the name of the source's snapshot.
    """

    ends: LoadEnds = field(repr=False)
    generation: int
    snapshot: str | None


class StepFencedError(Exception):
    """Another driver has taken over."""


class SnapshotLostError(Exception):
    """The source does not know the snapshot."""


def run_step(task: LoadTask, step: int, rows_of: RowsOf | None = None) -> LoadStepResult:
    """Does a step, unless it is done already.

    Args:
        task: what all steps of the load have in common.
        step: the step's number.
        rows_of: reads the source's rows; a session of PostgreSQL that imports the snapshot, where none is given.
    """
    rows_of = rows_of or partial(rows_of_postgresql, task, step)
    try:
        with _session(task.ends.target, ledger.session_name(task.ends.log_partition, step)) as target:
            _run(task, step, target, rows_of)
    except StepFencedError:
        return LoadStepResult(step, StepOutcome.FENCED)
    except SnapshotLostError as error:
        return LoadStepResult(step, StepOutcome.SNAPSHOT_LOST, str(error))
    except psycopg.Error as error:
        return failed_in_postgresql(step, error)
    return LoadStepResult(step, StepOutcome.DONE)


def failed_in_postgresql(step: int, error: psycopg.Error) -> LoadStepResult:
    """Returns what became of a step that a PostgreSQL database has ended."""
    again = error.diag.sqlstate is None or error.diag.sqlstate[:2] in _PASSING
    return LoadStepResult(step, StepOutcome.AGAIN if again else StepOutcome.REFUSED, _line(error))


# Connections, lack of resources, an operator's doing, and transactions that met: PostgreSQL manual, appendix A.
_PASSING: Final = ("08", "40", "53", "55", "57", "58")


def _run(task: LoadTask, step: int, target: psycopg.Connection, rows_of: RowsOf) -> None:
    log = task.ends.log_partition
    work = _claimed(target, log, task.generation, step)
    if work is None:
        target.execute("COMMIT")
        return
    rows, size = _copy(rows_of, work, target) if isinstance(work, CopyStep) else _execute(work, target)
    with target.pipeline():
        target.execute(ledger.DONE, (rows, size, log, step))
        target.execute("COMMIT")


def _claimed(target: psycopg.Connection, log: str, generation: int, step: int) -> StepWork | None:
    """Begins the step's transaction, which holds the load; returns what is to be done, None where it is done already.

    Raises:
        StepFencedError: another driver has taken over.
    """
    with target.pipeline():  # one way to the server and back
        target.execute("BEGIN")
        target.execute(_OF_THE_TARGET)
        held = target.execute(ledger.HOLD, (log, generation))
        claimed = target.execute(ledger.CLAIM, (log, step))
    if held.rowcount != 1:
        raise StepFencedError
    row = claimed.fetchone()
    return None if row is None else ledger.decoded(row[0])


def _execute(work: StepWork, target: psycopg.Connection) -> tuple[int, int]:
    """Executes a statement with the search path that pg_dump writes it for, and gives the ledger's own path back."""
    assert isinstance(work, StatementStep), "PostgreSQL checks foreign keys itself"
    target.execute(f"SET LOCAL search_path TO '';\n{work.sql}\n;SET LOCAL search_path TO DEFAULT".encode())
    return 0, 0


def _copy(rows_of: RowsOf, work: CopyStep, target: psycopg.Connection) -> tuple[int, int]:
    """Copies the rows of all queries by one statement; returns rows and bytes."""
    with rows_of(work) as blocks, target.cursor() as written:
        size = 0
        with written.copy(work.into.encode()) as copy:
            for block in blocks:
                size += len(block)
                copy.write(block)
        return written.rowcount, size


@contextmanager
def rows_of_postgresql(task: LoadTask, step: int, work: CopyStep) -> Iterator[Iterator[bytes]]:
    """Implements :class:`RowsOf`, with a session of PostgreSQL that imports the snapshot."""
    name = ledger.session_name(task.ends.log_partition, step)
    with _session(task.ends.source_url, name) as source, _under(source, task.snapshot):
        yield (block for query in work.queries for block in _blocks(source, query))


def _blocks(source: psycopg.Connection, query: str) -> Iterator[bytes]:
    """Yields the text of the rows that a COPY sends, in blocks of many rows.

    By libpq's own call: psycopg's takes ten times as long for each row, and a row is all that either gives.
    """
    connection = source.pgconn
    begun = connection.exec_(query.encode())
    if begun.status != pq.ExecStatus.COPY_OUT:
        raise errors.error_from_result(begun)
    rows = bytearray()
    while (row := connection.get_copy_data(0))[0] > 0:
        rows += row[1]
        if len(rows) >= _WRITTEN_AT_ONCE:
            yield bytes(rows)
            rows.clear()
    yield bytes(rows)
    while (ended := connection.get_result()) is not None:
        if ended.status != pq.ExecStatus.COMMAND_OK:
            raise errors.error_from_result(ended)


@contextmanager
def _under(source: psycopg.Connection, snapshot: str | None) -> Iterator[None]:
    """Runs a transaction of the source under the snapshot.

    Raises:
        SnapshotLostError: the source does not know it.
    """
    begin = sql.SQL("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT {}; {}")
    try:
        source.execute(begin.format(sql.Literal(snapshot), sql.SQL(_OF_THE_SOURCE)))
    except (errors.UndefinedObject, errors.InvalidParameterValue, errors.ObjectNotInPrerequisiteState) as error:
        raise SnapshotLostError(_line(error)) from None
    yield
    source.execute("COMMIT")


def close_sessions() -> None:
    """Closes the connections that steps of this thread have left open for the next step."""
    while _SESSIONS.kept:
        _SESSIONS.kept.popitem()[1].close()


class _Sessions(threading.local):
    """The connections of a thread, by their URLs: a step of a small table takes less time than to open one."""

    def __init__(self) -> None:
        self.kept: dict[str, psycopg.Connection] = {}


_SESSIONS: Final = _Sessions()


@contextmanager
def _session(url: str, name: str) -> Iterator[psycopg.Connection]:
    """Gives the thread's connection under a step's name; ends other sessions of the step that were left behind.

    After an error the connection is closed, which rolls back.
    """
    connection = _taken(url, name)
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
    _SESSIONS.kept[url] = connection


def _taken(url: str, name: str) -> psycopg.Connection:
    """Returns a connection that is the step's; one that was kept may have been lost while nobody used it."""
    if kept := _SESSIONS.kept.pop(url, None):
        try:
            kept.execute(_TAKE, (name, name))
            return kept
        except psycopg.OperationalError:
            kept.close()
    opened = connect(url, name)
    try:
        opened.execute(_TAKE, (name, name))
    except BaseException:
        opened.close()
        raise
    return opened


def _line(error: psycopg.Error) -> str:
    diagnosis = error.diag
    parts = (diagnosis.message_primary, diagnosis.message_detail, diagnosis.context)
    text = "; ".join(part for part in parts if part) or str(error)
    return redacted(" ".join(text.split()))[:LONGEST_CAUSE]
