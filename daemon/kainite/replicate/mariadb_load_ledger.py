"""The driver's view of the ledger of a load in MariaDB: begins it, plans it, sees which steps are left, ends it.

:mod:`~kainite.replicate.mariadb_ledger` has the states, the invariants, and what a crash leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

import pymysql

from kainite.base.errors import CatalogueError, TargetError, TargetFencedError, TargetUnavailableError
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.replicate import mariadb_ledger as ledger
from kainite.replicate import mariadb_table_ledger as table_ledger
from kainite.replicate.found_load import WAS_CUT_OVER, CutOverUndone, FoundLoad, PlacedTable, source_name
from kainite.replicate.ledger import LoadState, LoadStep, encoded
from kainite.replicate.mariadb_foreign_keys_lock import foreign_keys_alone
from kainite.replicate.mariadb_target_session import (
    LOCK_WAIT_S,
    end_mariadb_session,
    mariadb_session,
    mariadb_tables_with_rows,
    sql_name,
)
from kainite.replicate.tables import TableName
from kainite.targets.mariadb.rows import NO_TABLE, rows_if_there, rows_of

T = TypeVar("T")

_DATABASE: Final = "SELECT DATABASE()"
_STEPS_AT_ONCE: Final = 200


def found_mariadb_load(connection: pymysql.connections.Connection, log_partition: str) -> FoundLoad | None:
    """Returns the load of a target; None where Kainite has not loaded it."""
    found = rows_if_there(connection, ledger.READ, log_partition)
    if not found:
        return None
    generation, state, position, snapshot, source, began_ms, live_ms, now_ms, copies = found[0]
    place = None if position is None else int(position)
    return FoundLoad(
        generation, LoadState(state), place, snapshot, source, began_ms, live_ms, now_ms, copies=bool(copies)
    )


def mariadb_snapshot_needed(url: str, log_partition: str, generation: int, snapshot: str, alone_s: float) -> bool:
    """Tells whether a load still needs the snapshot of a point; raises TargetUnavailableError.

    Args:
        url: the target.
        log_partition: the log's name there.
        generation: the load's, when the point was made.
        snapshot: its name.
        alone_s: seconds without a sign of life of a driver after which nobody needs it.
    """
    with mariadb_session(url) as connection:
        found = rows_of(connection, ledger.SNAPSHOT_NEEDED, generation, snapshot, log_partition, alone_s)
    return bool(found and found[0][0])


class MariadbLoadLedger:
    """The ledger of one log's load, for the one driver that holds it; a :class:`.load_target.DrivenLedger`.

    Args:
        connection: a session with the target, in autocommit mode, of the driver alone.
        log_partition: the log's name in the target.

    Attributes:
        generation: the generation of this driver's load; 0 before :meth:`begin` or :meth:`go_on`.

    Raises:
        TargetError: another driver holds it.
    """

    def __init__(self, connection: pymysql.connections.Connection, log_partition: str) -> None:
        self._connection = connection
        self._log = log_partition
        self._database = str(self._rows(_DATABASE)[0][0])
        self.generation = 0
        name = ledger.driver_lock(self._database, log_partition)
        if self._rows(ledger.ONE_DRIVER, name)[0][0] != 1:
            holder = self._rows(ledger.HOLDER, name)[0][0]
            told = "another session" if holder is None else f"its session in the target is {holder}"
            raise TargetError(f"another kainite replicate load of {log_partition} runs ({told}): wait, or end it first")

    def create(self) -> None:
        """Makes the ledger's tables where they are missing."""
        for statement in (*ledger.CREATE, *table_ledger.CREATE):
            self._connection.query(statement)

    def found(self) -> FoundLoad | None:
        """Returns the load as the ledger has it."""
        return found_mariadb_load(self._connection, self._log)

    def begin(self, generation: int = -1) -> None:
        """Begins a load: from now on the apply job commits nothing, and no task of an earlier load does.

        Args:
            generation: an apply job's, below which the log has everything that it has as committed.

        Raises:
            CatalogueError: the target was cut over.
        """
        own = table_ledger.own_loads(self._log)
        with self.alone() as state:
            if state == LoadState.CUT_OVER:
                raise CatalogueError(WAS_CUT_OVER)
            self._execute(ledger.CLOSE_FENCE, self._log, generation)
            self._execute(table_ledger.END_OWN_LOADS, *own)
            self._execute(table_ledger.FORGET_ALL_HELD, self._log)
            self.begin_generation()

    def begin_generation(self) -> None:
        """Begins a load in the transaction of the caller, who has shut out all others."""
        self._execute(ledger.BEGIN, self._log)
        self._execute(ledger.SEEN, self._log)
        self.generation = int(self._rows(ledger.LOCK, self._log)[0][0])

    def go_on(self) -> None:
        """Goes on with a load that has a point: from now on no task of its earlier driver commits.

        Raises:
            TargetFencedError: the load has no point, or is none.
        """
        with self.alone():
            if self._execute(ledger.GO_ON, self._log) != 1:
                raise self.fenced()
            self._execute(ledger.SEEN, self._log)
            began = int(self._rows(ledger.LOCK, self._log)[0][0])
        self.generation = began

    def plan(self, point: ConsistentPoint, tables: Sequence[PlacedTable], steps: Iterable[LoadStep]) -> None:
        """Notes the point and the steps of a load that has begun; empties tables that an earlier load filled.

        Args:
            point: made after :meth:`begin`.
            tables: the tables that are loaded.
            steps: the ranges, and what looks at foreign keys behind them.

        Raises:
            CatalogueError: a table has rows that no load has put there.
            TargetFencedError: another driver has begun since.
        """
        self.seen()
        self._end_loads_of_tables()
        self._empty([table.place for table in tables])
        own = table_ledger.own_loads(self._log)
        with self.transaction():
            values = (point.lsn, point.snapshot, source_name(point), self._log, self.generation)
            if self._execute(ledger.SET_POINT, *values) != 1:
                raise self.fenced()
            self._execute(table_ledger.FORGET_OWN_LOADS, *own)
            self._execute(table_ledger.FORGET_OWN_STEPS, *own)
            self._execute(ledger.FORGET_TABLES, self._log)
            self._execute(ledger.FORGET_STEPS, self._log)
            for table in tables:
                self._execute(ledger.NOTE_TABLE, self._log, *table.place, point.lsn)
            self.note_steps(steps)

    def left(self, failed: Collection[int] = ()) -> list[int]:
        """Returns the steps of the first stage that is not done, without those that have failed."""
        return [step for (step,) in self._rows(ledger.LEFT, self._log, self._log) if step not in failed]

    def seen(self) -> None:
        """Notes that the driver lives; raises TargetFencedError where another one has taken over."""
        if not self._rows(ledger.IS_ITS, self._log, self.generation):
            raise self.fenced()
        self._execute(ledger.SEEN, self._log)

    def failed(self, step: int, cause: str) -> None:
        """Notes why a step cannot be done."""
        self._execute(ledger.FAILED, cause, self._log, step)

    def void(self) -> None:
        """Forgets the point: the next load begins anew."""
        self._execute(ledger.VOID, self._log, self.generation)

    def finish(self) -> None:
        """Makes the load live; raises TargetFencedError where a step is left, or another driver has taken over."""
        if self._execute(ledger.FINISH, self._log, self.generation) != 1:
            raise self.fenced()

    def cut_over(self, last: Callable[[pymysql.connections.Connection], T]) -> T:
        """Shuts the apply job out for good, and makes the target *cut over*; all or nothing.

        Args:
            last: called in the transaction, when nobody applies any more; what it raises leaves the target live. It
                must not execute DDL, which would commit.

        Raises:
            TargetFencedError: the target is not live, or foreign keys are off and nobody has tried to make them.
            TargetUnavailableError: somebody else drops or makes foreign keys for long.
        """
        with foreign_keys_alone(self._connection, self._log), self.transaction():
            self._execute(ledger.CLOSE_FENCE, self._log, -1)
            done = last(self._connection)
            [[gtids]] = self._rows(ledger.BINLOG_GTIDS)
            if self._execute(ledger.CUT_OVER, gtids, self._log) != 1:
                raise self.fenced()
            return done

    def make_live_again(self) -> CutOverUndone | None:
        """Takes a cut-over back; returns None where there was none."""
        with self.transaction():
            found = self._rows(ledger.CUT_OVER_IN, self._log)
            if not found:
                return None
            [[gtids]] = self._rows(ledger.BINLOG_GTIDS)
            self._execute(ledger.MAKE_LIVE_AGAIN, self._log)
        return CutOverUndone(ledger.written_since(found[0][0], gtids))

    def names_of(self, steps: Collection[int]) -> Mapping[int, str]:
        """Returns the tables of steps."""
        return dict(self._rows(ledger.NAMES, self._log, tuple(steps))) if steps else {}

    def _empty(self, tables: Sequence[TableName]) -> None:
        """Empties what an earlier load of this ledger filled; refuses rows that came from elsewhere.

        On the session that holds the driver's lock, whose load is *loading* and has no point yet.
        """
        filled = [(schema, name) for schema, name, _ in self._rows(ledger.POSITIONS, self._log)]
        if full := mariadb_tables_with_rows(self._connection, [name for name in tables if name not in filled]):
            names_of = ", ".join(f"{schema}.{name}" for schema, name in full)
            raise CatalogueError(f"the target has rows that no load has put there, in {names_of}: TRUNCATE them")
        if not filled:
            return
        for schema, name in filled:
            try:
                self.truncate((schema, name))
            except pymysql.Error as error:
                if error.args[0] != NO_TABLE:
                    raise

    def truncate(self, table: TableName) -> None:
        """Empties a table, whose rows this load alone writes: by the session that holds the driver's lock."""
        self._connection.query("SET SESSION foreign_key_checks = 0")  # else a parent could not be emptied
        try:
            self._connection.query(f"TRUNCATE TABLE {sql_name(*table)}")
        finally:
            with suppress(pymysql.Error):  # a session that is lost needs no setting
                self._connection.query("SET SESSION foreign_key_checks = 1")

    def note_steps(self, steps: Iterable[LoadStep]) -> None:
        noted = [(self._log, step.number, step.stage, step.schema, step.table, encoded(step.work)) for step in steps]
        with self._connection.cursor() as cursor:
            for first in range(0, len(noted), _STEPS_AT_ONCE):
                cursor.executemany(ledger.NOTE_STEP, noted[first : first + _STEPS_AT_ONCE])

    def _end_loads_of_tables(self) -> None:
        """Ends the sessions of drivers of single tables, whose load is over: one may be about to empty its table."""
        own = table_ledger.own_loads(self._log)
        for (name,) in self._rows(table_ledger.OWN_LOADS, *own):
            lock = ledger.driver_lock(self._database, name)
            if (holder := self._rows(ledger.HOLDER, lock)[0][0]) is not None:
                end_mariadb_session(self._connection, holder)
            if self._rows(ledger.TAKE_STEP, lock, LOCK_WAIT_S)[0][0] != 1:
                raise TargetUnavailableError(f"the target's session {holder} of {name} does not end: KILL {holder}")
            self._rows(ledger.GIVE_BACK, lock)

    def _end_sessions(self) -> None:
        """Ends the sessions of steps that were left behind."""
        prefix = ledger.step_lock(self._database, self._log)
        for (holder,) in self._rows(ledger.LEFT_SESSIONS, prefix, self._log):
            end_mariadb_session(self._connection, holder)

    @contextmanager
    def alone(self) -> Iterator[str | None]:
        """Runs a transaction that holds the load against all tasks; ends the sessions of those that were left.

        Gives the load's state; None where there is no load.
        """
        self._end_sessions()
        with self.transaction():
            found = self._rows(ledger.LOCK, self._log)
            yield found[0][1] if found else None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Runs a transaction on the driver's session."""
        self._connection.begin()
        try:
            yield
            self._connection.commit()
        except BaseException:
            with suppress(pymysql.Error):  # the connection may be lost, which has the same effect
                self._connection.rollback()
            raise

    def _rows(self, query: str, *values: object) -> list[Any]:
        return rows_of(self._connection, query, *values)

    def _execute(self, sql: str, *values: object) -> int:
        with self._connection.cursor() as cursor:
            return cursor.execute(sql, values)

    def fenced(self) -> TargetFencedError:
        """Returns the error of a driver that another one has shut out."""
        return TargetFencedError(
            f"generation {self.generation} of the load of {self._log} may not write any more: another kainite replicate"
            " load has begun, or there is nothing to go on with; kainite replicate status tells"
        )
