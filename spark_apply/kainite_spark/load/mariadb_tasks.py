"""Does one step of a load into MariaDB: copies a range of rows, or looks for rows that lack their parent.

A step is one transaction of the target (:mod:`kainite.replicate.mariadb_ledger`)::

    end what was left of the step ─► hold the load ─► claim the step ─► copy, or look ─► note it as done ─► commit

Rows go as multi-row inserts, whose values are spelled by the same code as those of the apply job
(:mod:`kainite_spark.targets.mariadb.literals`), by the types that the columns have now. The transaction's last question
is whether they still have them, as in the apply job. ``LOAD DATA LOCAL`` would be no safe way: with it the server
makes warnings of what does not fit, and passes over rows whose key is there.

The transaction holds its step's row until it ends. A session that was left behind is found by the lock that it holds,
and ended: its transaction rolls back before the lock is free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

import psycopg
import pymysql

from kainite.base.errors import (
    TargetBusyError,
    TargetError,
    TargetInterruptedError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite.replicate import mariadb_ledger as ledger
from kainite.replicate.ledger import CopyStep, decoded
from kainite.replicate.mariadb_foreign_keys import NotedForeignKey, foreign_keys_of
from kainite.replicate.mariadb_target_session import end_mariadb_session
from kainite.targets.mariadb.address import server_of
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.rows import rows_of
from kainite.uow.catalogue.tables import Column, Table, TypeFamily
from kainite.uow.delta import Delta, Operation
from kainite_spark.load.copied_rows import copied_rows
from kainite_spark.load.tasks import (
    LOCK_WAIT_S,
    LONGEST_CAUSE,
    LoadStepResult,
    LoadTask,
    RowsOf,
    SnapshotLostError,
    StepFencedError,
    StepOutcome,
    failed_in_postgresql,
    rows_of_postgresql,
)
from kainite_spark.targets.mariadb.errors import about_own_tables, about_units
from kainite_spark.targets.mariadb.packet import FailedStatementError, send
from kainite_spark.targets.mariadb.present_tables import PresentTables
from kainite_spark.targets.mariadb.rendering import inserts
from kainite_spark.targets.mariadb.session import beginning
from kainite_spark.targets.statements.planner import StatementShape
from kainite_spark.targets.statements.unit_values import values_refused

_END_S: Final = 10
"""Seconds for which a session that was ended is waited for."""

# A range takes as long as it takes; the server ends a transaction whose client is silent for a minute.
_NO_LIMITS: Final = "SET SESSION foreign_key_checks = 0, max_statement_time = 0"
_MOST_PACKET: Final = "SELECT @@max_allowed_packet"
_PASSING: Final = (TargetBusyError, TargetInterruptedError, TargetUnavailableError)


def run_mariadb_step(task: LoadTask, step: int, source: RowsOf | None = None) -> LoadStepResult:
    """Does a step, unless it is done already.

    Args:
        task: what all steps of the load have in common.
        step: the step's number.
        source: reads the source's rows; a session of PostgreSQL that imports the snapshot, where none is given.
    """
    try:
        with _session(task, step) as target:
            _run(task, step, target, source or partial(rows_of_postgresql, task, step))
    except StepFencedError:
        return LoadStepResult(step, StepOutcome.FENCED)
    except SnapshotLostError as error:
        return LoadStepResult(step, StepOutcome.SNAPSHOT_LOST, str(error))
    except psycopg.Error as error:
        return failed_in_postgresql(step, error)
    except TargetError as error:
        outcome = StepOutcome.AGAIN if isinstance(error, _PASSING) else StepOutcome.REFUSED
        return LoadStepResult(step, outcome, str(error)[:LONGEST_CAUSE])
    return LoadStepResult(step, StepOutcome.DONE)


@contextmanager
def _session(task: LoadTask, step: int) -> Iterator[pymysql.connections.Connection]:
    """Opens a session under a step's lock; ends another one that was left behind. Its end rolls back."""
    name = ledger.step_lock(server_of(task.ends.target).database, task.ends.log_partition, step)
    with _own_tables():
        target = connect(task.ends.target, silent=None)
    try:
        with _own_tables():
            if (holder := rows_of(target, ledger.HOLDER, name)[0][0]) is not None:
                end_mariadb_session(target, holder)
            if rows_of(target, ledger.TAKE_STEP, name, _END_S)[0][0] != 1:
                raise TargetBusyError(f"MariaDB: session {holder} of an earlier try of the step does not end")
        yield target
    finally:
        with suppress(pymysql.Error):  # it was lost already
            target.close()


def _run(task: LoadTask, step: int, target: pymysql.connections.Connection, source: RowsOf) -> None:
    log = task.ends.log_partition
    with _own_tables():
        send(target, [*beginning(LOCK_WAIT_S), _NO_LIMITS])
        if not rows_of(target, ledger.HOLD, log, task.generation):
            raise StepFencedError
        claimed = rows_of(target, ledger.CLAIM, log, step)
    if not claimed:
        return
    text, schema, name = claimed[0]
    work = decoded(text)
    rows = size = 0
    if isinstance(work, CopyStep):
        rows, size = _copy(work, schema, name, target, source)
    else:
        _check_parents(log, schema, name, target)
    with _own_tables(), target.cursor() as cursor:
        cursor.execute(ledger.DONE, (rows, size, log, step))
        target.commit()


def _copy(
    work: CopyStep, schema: str, name: str, target: pymysql.connections.Connection, source: RowsOf
) -> tuple[int, int]:
    """Copies the rows of all queries; returns rows and bytes."""
    present = PresentTables()
    untyped = {column: Column(column, "", TypeFamily.OPAQUE) for column in work.types}
    with _rows_of_table(f"{schema}.{name}"):
        table = present.table(target, Table(f"{schema}.{name}", schema, untyped))
        most = int(rows_of(target, _MOST_PACKET)[0][0])
    count = size = 0
    with source(work) as blocks:
        for block in blocks:
            deltas = [Delta(table.name, Operation.INSERT, {}, row, {}) for row in copied_rows(block, work.types)]
            _insert(target, table, tuple(work.types), deltas, most)
            count, size = count + len(deltas), size + len(block)
    with _rows_of_table(table.name):
        if present.changed([table.name], send(target, [present.question(table)])):
            raise TargetBusyError(f"MariaDB: {table.name} was altered while its rows were copied")
    return count, size


def _insert(
    target: pymysql.connections.Connection, table: Table, columns: tuple[str, ...], deltas: Sequence[Delta], most: int
) -> None:
    if not deltas:
        return
    shape = StatementShape(table.name, Operation.INSERT, columns, ())
    with values_refused():
        for sql, _ in inserts(shape, table, deltas):
            if (needed := len(sql.encode())) >= most:
                raise TargetRejectedError(
                    f"{table.name}: an INSERT of {needed} bytes is longer than the target's max_allowed_packet of"
                    f" {most}: SET GLOBAL max_allowed_packet = {2 * needed}"
                )
            with _rows_of_table(table.name):
                send(target, [sql])


def _check_parents(log: str, schema: str, name: str, target: pymysql.connections.Connection) -> None:
    """Looks for rows that lack their parent, by the foreign keys of a table; and by those to it of other tables.

    Raises:
        TargetRejectedError: there are some; it names a few.
    """
    with _own_tables():
        loaded = {(one, other) for one, other, _ in rows_of(target, ledger.POSITIONS, log)}
        found = foreign_keys_of(target, (schema, name))
    # Those of other tables that are loaded are looked at with them.
    looked_at = [one for one in found if one.child == (schema, name) or one.child not in loaded]
    causes = [cause for one in looked_at if (cause := _orphans(target, one))]
    if causes:
        raise TargetRejectedError(
            f"{'; '.join(causes)}. The source has such rows, and no such foreign key: mend them there and load anew"
            " (--anew), or DROP FOREIGN KEY in the target and start the load again"
        )


def _orphans(target: pymysql.connections.Connection, key: NotedForeignKey) -> str:
    with _rows_of_table(".".join(key.child)):
        return key.orphans(target)


@contextmanager
def _own_tables() -> Iterator[None]:
    """Raises errors of the driver as what they mean about Kainite's own tables, or the connection."""
    try:
        yield
    except FailedStatementError as failed:
        raise about_own_tables(failed.error) from failed.error
    except pymysql.Error as error:
        raise about_own_tables(error) from error


@contextmanager
def _rows_of_table(table: str) -> Iterator[None]:
    """Raises errors of the driver as what they mean about a table's rows."""
    try:
        yield
    except FailedStatementError as failed:
        raise about_units(failed.error, table) from failed.error
    except pymysql.Error as error:
        raise about_units(error, table) from error
