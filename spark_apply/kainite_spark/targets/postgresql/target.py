"""PostgreSQL as a target, by psycopg 3.

A transaction of :meth:`PostgresSession.apply` takes two round trips: all statements in one pipeline, then
the commit once the row counts are right. Before any data, one statement both locks the fence's row (FOR SHARE)
and writes the acknowledgements, so that

* a task whose fence is gone writes no acknowledgement, sees that by the row count, and rolls back;
* two tasks that apply the same unit meet at the acknowledgement's key before they touch any data:
  the second waits, then fails there, and not at a row, which would look like the unit's own fault.

A session reopens a lost connection. If the connection is lost during the commit, the units'
acknowledgements tell whether they are applied. Constraints and triggers stay on.

Values are read by the types that columns have now (:mod:`~kainite_spark.targets.postgresql.column_types`): the
transaction's last statement asks whether the types that its statements spell are outdated. Then it is rolled back
and made once more with others. So is a refused one whose types turn out to be outdated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from psycopg import errors

from kainite.base.errors import TargetBusyError, TargetError, TargetRejectedError
from kainite.base.redaction import learn, secrets_in_url
from kainite.targets.postgresql.connection import connect
from kainite.targets.postgresql.text_forms import as_statements
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence, already_applied, fence_lost, outranked
from kainite_spark.targets.postgresql import ledger
from kainite_spark.targets.postgresql.column_types import ColumnTypes, changed
from kainite_spark.targets.postgresql.driver_connection import DriverConnection
from kainite_spark.targets.postgresql.errors import about_own_tables, about_units
from kainite_spark.targets.postgresql.rendering import MOST_BYTES, cut, parameters, render
from kainite_spark.targets.schema import Schema
from kainite_spark.targets.statements.planner import Planner, Statement, StatementShape
from kainite_spark.targets.statements.row_counts import check_rows

ROW_WAIT_S = 1
"""How long a task waits for a lock, in seconds: a group of 500 units with one locked row is cut in two nine
times, and each part with the locked row waits for it."""

_FENCE_WAIT_S = 30
"""How long the driver waits for the transactions of a micro-batch before, in seconds."""

# Also limits how long others wait for a task that hangs in its transaction.
_SESSION = f"""
    SET lock_timeout = '{{wait}}s'; SET idle_in_transaction_session_timeout = '60s';
    SET default_transaction_isolation = 'read committed'; {as_statements()}"""

_TRIES = 3
"""Tries of a transaction while columns get other types."""

_PLAN_ANEW = "DISCARD PLANS"
"""PostgreSQL keeps the plans by which it checks foreign keys for the life of a session, or until it analyzes the table.
A check that was planned while the table was nearly empty reads all of it for each row: with order entry PostgreSQL
took 1,533 microseconds of processor time a unit, and takes 214 with plans that are made for each transaction."""


class _OutdatedTypesError(Exception):
    """Columns have got other types than those that the transaction's statements spell."""


class PostgresSession:
    """One connection, one transaction at a time; implements :class:`kainite_spark.targets.contract.TargetSession`."""

    def __init__(self, url: str, schema: Schema) -> None:
        self._url = url
        self._schema = schema
        self._planner = Planner(schema.catalogue, schema.levels)
        self._types = ColumnTypes()
        self._sql: dict[StatementShape, str] = {}
        self._connection: psycopg.Connection | None = None

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        with self._transaction() as connection:
            return {tid for (tid,) in connection.execute(ledger.APPLIED, (log_partition, list(tids)))}

    def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        if units:
            self._apply(fence, units, lambda: self._planner.plan(units, folded=folded))

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        self._apply(fence, (unit,), lambda: self._planner.one_by_one(unit))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def open(self) -> psycopg.Connection:
        """Returns the connection, which it opens if there is none; raises TargetUnavailableError."""
        if self._connection is None or self._connection.closed:
            self._connection = _connect(self._url, ROW_WAIT_S)
        return self._connection

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection]:
        """Runs a transaction, in which the statements of units raise no error of psycopg; their commit may."""
        connection = self.open()
        try:
            yield connection
        except psycopg.Error as error:
            self._abandon()
            raise about_own_tables(error) from error
        except BaseException:
            self._abandon()
            raise
        try:
            connection.commit()
        except psycopg.Error as error:  # deferred constraints, and deferred triggers
            self._abandon()
            raise about_units(error, None) from error
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        """Rolls back; closes a connection that cannot roll back, which has the same effect."""
        if self._connection is not None:
            try:
                self._connection.rollback()
            except psycopg.Error:
                self.close()

    def _apply(self, fence: Fence, units: Sequence[Unit], planned: Callable[[], Iterable[Statement]]) -> None:
        for _ in range(_TRIES):
            try:
                return self._apply_once(fence, units, planned())
            except _OutdatedTypesError:
                self._forget_types()
            except TargetRejectedError:
                if not self._types_changed():
                    raise
                self._forget_types()
        raise TargetBusyError("PostgreSQL: columns get other types again and again")

    def _types_changed(self) -> bool:
        with self._transaction() as connection:
            return changed(self._types.ask(connection, self._types.tables))

    def _forget_types(self) -> None:
        self._types.forget()
        self._sql.clear()

    def _apply_once(self, fence: Fence, units: Sequence[Unit], statements: Iterable[Statement]) -> None:
        with self._transaction() as connection:
            sent = _Sent(fence, len(units))
            try:
                with connection.pipeline():
                    self._send(connection, sent, units, statements)
            except psycopg.Error as error:
                raise sent.failure(error) from error
            sent.check()

    def _send(
        self, connection: psycopg.Connection, sent: _Sent, units: Sequence[Unit], statements: Iterable[Statement]
    ) -> None:
        fence = sent.fence
        which = (fence.log_partition, fence.generation, fence.micro_batch)
        acknowledged = (fence.log_partition, [unit.tid for unit in units], [unit.uow for unit in units])
        connection.execute(_PLAN_ANEW)
        sent.acknowledgement = connection.execute(ledger.ACKNOWLEDGE, (*which, *acknowledged))
        if self._schema.cyclic:
            connection.execute("SET CONSTRAINTS ALL DEFERRED")
        small = all(unit.size for unit in units) and sum(unit.size for unit in units) <= MOST_BYTES
        for statement in statements if small else _cut(statements):
            shape = statement.shape
            sql = self._sql.get(shape)
            if sql is None:
                table = self._types.table(connection, self._schema.catalogue.tables[shape.table])
                sql = self._sql[shape] = render(shape, table, self._types.fixed[table.name])
            sent.cursors.append((statement, connection.execute(sql, parameters(shape, statement.deltas))))
        if sent.cursors:
            sent.types = self._types.ask(connection, {statement.shape.table for statement, _ in sent.cursors})


@dataclass(slots=True)
class _Sent:
    """The statements that a transaction has sent, with their results."""

    fence: Fence
    units: int
    acknowledgement: psycopg.Cursor | None = None
    types: psycopg.Cursor | None = None
    cursors: list[tuple[Statement, psycopg.Cursor]] = field(default_factory=list)

    def check(self) -> None:
        """Raises unless every statement touched a row for every delta and the fence was right."""
        if self._fence_lost():
            raise fence_lost(self.fence)
        if self.types is not None and changed(self.types):
            raise _OutdatedTypesError
        for statement, cursor in self.cursors:
            check_rows(statement, cursor.rowcount)

    def failure(self, error: psycopg.Error) -> TargetError:
        """Returns Kainite's error for an error in the pipeline; a lost fence comes first, as it explains all others."""
        if self._fence_lost():
            return fence_lost(self.fence)
        if isinstance(error, errors.UniqueViolation) and error.diag.table_name == "kainite_applied":
            return already_applied(self.fence)
        if self.acknowledgement is None or self.acknowledgement.pgresult is None:
            return about_own_tables(error)
        failed = (statement.shape.table for statement, cursor in self.cursors if cursor.pgresult is None)
        return about_units(error, next(failed, None))

    def _fence_lost(self) -> bool:
        cursor = self.acknowledgement
        return cursor is not None and cursor.pgresult is not None and cursor.rowcount != self.units


@dataclass(frozen=True, slots=True)
class PostgresTarget:
    """A PostgreSQL database; implements :class:`kainite_spark.targets.contract.Target`.

    Attributes:
        url: ``postgresql://…``, as libpq takes it; ``repr`` leaves it out, since it may hold a password.
        schema: the database's tables.
        driver: the connection of all methods but ``connect``, which one thread calls.
    """

    url: str = field(repr=False)
    schema: Schema
    driver: DriverConnection = field(default_factory=DriverConnection, repr=False, compare=False)

    def connect(self) -> PostgresSession:
        # A task gets its target from the driver, not from settings, and logs errors of its own.
        learn(secrets_in_url(self.url))
        session = PostgresSession(self.url, self.schema)
        session.open()
        return session

    def prepare(self, catalogue: Catalogue) -> None:
        Schema.of(catalogue)
        with self._transaction() as connection:
            # Two sessions that run CREATE TABLE IF NOT EXISTS at the same time may fail in the system catalogue.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('kainite_applied'))")
            connection.execute(ledger.CREATE_APPLIED)
            connection.execute(ledger.CREATE_FENCE)

    def raise_generation(self, log_partition: str, generation: int) -> None:
        with self._transaction() as connection:
            if connection.execute(ledger.RAISE_GENERATION, (log_partition, generation)).rowcount != 1:
                raise outranked(log_partition, generation)

    def begin_micro_batch(self, fence: Fence) -> None:
        with self._transaction() as connection:
            _advance(connection, ledger.BEGIN_MICRO_BATCH, fence)

    def close_micro_batch(self, fence: Fence, tids: Collection[int]) -> set[int]:
        with self._transaction() as connection:
            _advance(connection, ledger.CLOSE_MICRO_BATCH, fence)
            # A statement of its own, whose snapshot has what the tasks committed while the fence waited for them.
            return {tid for (tid,) in connection.execute(ledger.APPLIED, (fence.log_partition, list(tids)))}

    def trim(self, fence: Fence, below: int) -> int:
        with self._transaction() as connection:
            _advance(connection, ledger.CLOSE_MICRO_BATCH, fence)
            return connection.execute(ledger.TRIM, (fence.log_partition, below)).rowcount

    def close(self) -> None:
        self.driver.close()

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection]:
        """Runs a short transaction on the driver's connection."""
        try:
            with self.driver.transaction(lambda: _connect(self.url, _FENCE_WAIT_S)) as connection:
                yield connection
        except psycopg.Error as error:
            raise about_own_tables(error) from error


def _cut(statements: Iterable[Statement]) -> Iterator[Statement]:
    return (part for statement in statements for part in cut(statement, MOST_BYTES))


def _advance(connection: psycopg.Connection, sql: str, fence: Fence) -> None:
    values = (fence.micro_batch, fence.log_partition, fence.generation, fence.micro_batch)
    if connection.execute(sql, values).rowcount != 1:
        raise fence_lost(fence)


def _connect(url: str, lock_wait: int) -> psycopg.Connection:
    """Opens a connection without prepared statements: a plan made while a table was small would be used for ever.

    ``plan_cache_mode`` is no alternative: it also makes the server plan the foreign keys' checks anew for
    each row, which was measured to double the time of an insert.
    """
    try:
        connection = connect(url, "kainite apply")
        connection.execute(_SESSION.format(wait=lock_wait).encode())
        connection.autocommit = False
    except psycopg.Error as error:
        raise about_own_tables(error) from error
    return connection
