"""SQLite as a target, by the standard library's driver.

SQLite has one writer at a time, so ``BEGIN IMMEDIATE`` is the only lock: to advance the fence waits for the
transaction in progress, and every transaction that writes reads the fence first. Foreign keys are checked
after each statement, which writes one row. If tables reference each other in a cycle, all checks are
deferred to the commit (``PRAGMA defer_foreign_keys``). Each transaction reads first which triggers there are
(:mod:`~kainite_spark.targets.sqlite.firing_triggers`).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from kainite.base.errors import (
    CatalogueError,
    TargetBusyError,
    TargetError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite.settings import TargetTriggers
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence, already_applied, fence_lost, outranked
from kainite_spark.targets.holding import BeforeCommit
from kainite_spark.targets.hooks import FoundHooks, Hook, HookPolicy, refusal, tell_firing
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.mark import TargetMark, check_mark
from kainite_spark.targets.schema import Schema
from kainite_spark.targets.sqlite import ledger
from kainite_spark.targets.sqlite.firing_triggers import found_triggers
from kainite_spark.targets.sqlite.rendering import parameters, render
from kainite_spark.targets.statements.planner import Planner, Statement, StatementShape
from kainite_spark.targets.statements.row_counts import check_rows
from kainite_spark.targets.statements.unit_values import values_refused

_BUSY_SECONDS = 5.0

_Plan: TypeAlias = Callable[[Collection[str]], Iterable[Statement]]
"""Makes the statements of a transaction, given the tables of which a change may fire a trigger."""

# Primary result codes that are not the unit's fault: the file, the disk, a lock of another connection. Any other code
# in a unit's statement, or in its commit, refuses the unit.
_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOLFS,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOTADB,
    }
)


class SqliteSession:
    """A connection to SQLite; implements :class:`kainite_spark.targets.contract.TargetSession`."""

    def __init__(self, path: str, schema: Schema, policy: HookPolicy) -> None:
        self._schema = schema
        self._policy = policy
        self._planner = Planner(schema.catalogue, schema.levels)
        self._sql: dict[StatementShape, str] = {}
        self._connection = _connect(path)
        self._before_commit: BeforeCommit | None = None

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        with _translated():
            rows = self._connection.execute(ledger.APPLIED, (log_partition, str(list(tids))))
            return {tid for (tid,) in rows}

    def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        if units:
            self._apply(fence, units, lambda hooked: self._planner.plan(units, folded=folded, hooked=hooked))

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        self._apply(fence, (unit,), lambda _: self._planner.one_by_one(unit))

    @contextmanager
    def before_commit(self, act: BeforeCommit) -> Iterator[None]:
        """Does as :mod:`kainite_spark.targets.holding` says; deferred foreign keys are checked after the call."""
        self._before_commit = act
        try:
            yield
        finally:
            self._before_commit = None

    def close(self) -> None:
        self._connection.close()

    def _apply(self, fence: Fence, units: Sequence[Unit], planned: _Plan) -> None:
        with _transaction(self._connection) as connection:
            with values_refused():
                self._acknowledge(connection, fence, units)
                found = found_triggers(connection, self._schema.catalogue)
                if unwanted := self._policy.unwanted(found.firing):
                    raise TargetError(refusal(unwanted))
                if self._schema.cyclic:
                    connection.execute("PRAGMA defer_foreign_keys = ON")
                for statement in planned(found.hooked):
                    self._execute(connection, statement)
            if self._before_commit is not None:
                self._before_commit()

    def _acknowledge(self, connection: sqlite3.Connection, fence: Fence, units: Sequence[Unit]) -> None:
        with _translated():
            if connection.execute(ledger.READ_FENCE, _values(fence)).fetchone() is None:
                raise fence_lost(fence)
            rows = [(fence.log_partition, unit.tid, unit.uow) for unit in units]
            try:
                connection.executemany(ledger.ACKNOWLEDGE, rows)
            except sqlite3.IntegrityError as error:
                raise already_applied(fence) from error

    def _execute(self, connection: sqlite3.Connection, statement: Statement) -> None:
        shape, deltas = statement.shape, statement.deltas
        table = self._schema.catalogue.tables[shape.table]
        sql = self._sql.get(shape)
        if sql is None:
            sql = self._sql[shape] = render(shape, table)
        try:
            cursor = connection.executemany(sql, (parameters(shape, table, delta) for delta in deltas))
        except sqlite3.Error as error:
            raise _meaning(error, shape.table) from error
        check_rows(statement, cursor.rowcount)


@dataclass(frozen=True, slots=True)
class SqliteTarget:
    """A SQLite database file; implements :class:`kainite_spark.targets.contract.Target`."""

    path: str
    schema: Schema
    policy: HookPolicy = field(default_factory=HookPolicy)

    def connect(self) -> SqliteSession:
        return SqliteSession(self.path, self.schema, self.policy)

    def prepare(self, log_partition: str, catalogue: Catalogue) -> None:
        Schema.of(catalogue)
        with self._transaction() as connection:
            connection.execute(ledger.CREATE_APPLIED)
            connection.execute(ledger.CREATE_FENCE)
            firing = found_triggers(connection, self.schema.catalogue).firing
        if why := self._why_refused(firing):
            raise CatalogueError(why)
        tell_firing(firing)

    def take_tables(self, taking: LogTables) -> None:
        with self._transaction() as connection:
            connection.execute(ledger.CREATE_LOG_TABLE)
            rows = [(name, taking.log, taking.log_partition) for name in taking.full_names]
            connection.executemany(ledger.TAKE_TABLE, rows)
            others = connection.execute(ledger.TABLES_OF_OTHERS, (taking.log,))
            taking.check({name: log for name, log in others if name in taking.tables.values()})

    def give_up_tables(self, fence: Fence, taking: LogTables, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            _advance(connection, ledger.CLOSE_MICRO_BATCH, fence, mark)
            has = connection.execute(ledger.TABLES_OF_LOG, (taking.log_partition,)).fetchall()
            connection.executemany(ledger.GIVE_UP_TABLE, taking.given_up(name for (name,) in has))

    def hooks(self) -> FoundHooks:
        with self._transaction() as connection:
            found = found_triggers(connection, self.schema.catalogue)
        return replace(found, why_refused=self._why_refused(found.firing))

    def _why_refused(self, firing: Sequence[Hook]) -> str | None:
        unwanted = self.policy.unwanted(firing)
        if not unwanted:
            return None
        return _undisabled(unwanted) if self.policy.triggers is TargetTriggers.OFF else refusal(unwanted)

    def switch_on(self) -> Sequence[Hook]:
        """Does nothing: SQLite's triggers cannot be switched off."""
        return ()

    def raise_generation(self, log_partition: str, generation: int, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            _compare(connection, log_partition, mark)
            sql = ledger.RAISE_GENERATION
            if connection.execute(sql, (log_partition, generation)).rowcount != 1:
                raise outranked(log_partition, generation)

    def begin_micro_batch(self, fence: Fence, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            _advance(connection, ledger.BEGIN_MICRO_BATCH, fence, mark)

    def close_micro_batch(self, fence: Fence, tids: Collection[int], mark: TargetMark | None = None) -> set[int]:
        with self._transaction() as connection:
            _advance(connection, ledger.CLOSE_MICRO_BATCH, fence, mark)
            return {tid for (tid,) in connection.execute(ledger.APPLIED, (fence.log_partition, str(list(tids))))}

    def trim(self, fence: Fence, below: int, mark: TargetMark | None = None) -> int:
        with self._transaction() as connection:
            _advance(connection, ledger.CLOSE_MICRO_BATCH, fence, mark)
            return connection.execute(ledger.TRIM, (fence.log_partition, below)).rowcount

    def prepare_common_mark(self) -> None:
        with self._transaction() as connection:
            connection.execute(ledger.CREATE_MARK)

    def note_common_mark(self, fence: Fence, everywhere_below: int, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            _advance(connection, ledger.CLOSE_MICRO_BATCH, fence, mark)
            connection.execute(ledger.NOTE_MARK, (fence.log_partition, everywhere_below))

    def close(self) -> None:
        """Does nothing: each call has a connection of its own."""

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = _connect(self.path)
        try:
            with _transaction(connection):
                yield connection
        finally:
            connection.close()


def _undisabled(unwanted: Sequence[Hook]) -> str:
    dropped = "; ".join(f'DROP TRIGGER "{hook.name}"' for hook in unwanted)
    return (
        f"targetTriggers=off: SQLite cannot switch a trigger off. Drop them, and make them again afterwards: {dropped}"
    )


def _compare(connection: sqlite3.Connection, log_partition: str, mark: TargetMark | None) -> None:
    """Raises TargetWentBackError if the target is behind the mark."""
    if mark is not None:
        found = connection.execute(ledger.FENCE, (log_partition,)).fetchone()
        acknowledged = connection.execute(ledger.APPLIED, (log_partition, str(list(mark.tids)))).fetchall()
        check_mark(log_partition, mark, found, len(acknowledged))


def _advance(connection: sqlite3.Connection, sql: str, fence: Fence, mark: TargetMark | None) -> None:
    _compare(connection, fence.log_partition, mark)
    values = (fence.micro_batch, fence.log_partition, fence.generation, fence.micro_batch)
    if connection.execute(sql, values).rowcount != 1:
        raise fence_lost(fence)


def _connect(path: str) -> sqlite3.Connection:
    """Opens the database file, which must exist, with foreign keys enforced."""
    with _translated():
        uri = f"{Path(path).absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        return connection


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Runs a transaction, in which the statements of units raise no error of SQLite; their commit may."""
    with _translated():
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            _commit(connection)
        except BaseException:
            # SQLite has already rolled back after some errors (a full disk).
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _commit(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:  # deferred foreign keys
        raise _meaning(error, None) from error


@contextmanager
def _translated() -> Iterator[None]:
    """Raises Kainite's error for an error of SQLite that is about no unit's rows: Kainite's own tables, the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise _passing(error, str(error)) or TargetError(f"SQLite: {error}") from error


def _meaning(error: Exception, table: str | None) -> TargetError:
    """Returns Kainite's error for an error of a unit's statement, or of the commit."""
    text = " ".join(f"{table}: {error}".split()) if table else str(error)
    return _passing(error, text) or TargetRejectedError(text)


def _passing(error: Exception, text: str) -> TargetError | None:
    """Returns the error if what it tells may pass by itself."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None and code & 0xFF == sqlite3.SQLITE_NOMEM:
        return TargetBusyError(f"SQLite: {text}")
    if code is not None and code & 0xFF in _UNAVAILABLE:
        return TargetUnavailableError(f"SQLite: {text}")
    return None


def _values(fence: Fence) -> tuple[str, int, int]:
    return fence.log_partition, fence.generation, fence.micro_batch
