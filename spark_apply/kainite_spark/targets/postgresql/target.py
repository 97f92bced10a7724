"""PostgreSQL as a target, by psycopg 3.

A transaction of :meth:`PostgresSession.apply` takes two round trips: all statements in one pipeline, then
the commit once the row counts are right. Before any data, one statement both locks the fence's row (FOR SHARE)
and writes the acknowledgements, so that

* a task whose fence is gone writes no acknowledgement, sees that by the row count, and rolls back;
* two tasks that apply the same unit meet at the acknowledgement's key before they touch any data:
  the second waits, then fails there, and not at a row, which would look like the unit's own fault.

A session reopens a lost connection. If the connection is lost during the commit, the units'
acknowledgements tell whether they are applied. Constraints stay on; which triggers fire, and that it is no other ones
than the statements were made for, is :mod:`~kainite_spark.targets.postgresql.firing_hooks`'s.

Each transaction begins with settings of its own (:func:`_pin`), which cost no round trip in the pipeline.

Values are read by the types that columns have now (:mod:`~kainite_spark.targets.postgresql.column_types`): the
transaction's last statement asks whether the types that its statements spell are outdated. Then it is rolled back
and made once more with others. So is a refused one whose types turn out to be outdated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TypeAlias

import psycopg
from psycopg import errors

from kainite.base.errors import CatalogueError, TargetBusyError, TargetError, TargetFencedError, TargetRejectedError
from kainite.base.logs import event
from kainite.settings import TargetTriggers
from kainite.targets.postgresql.connection import connect
from kainite.targets.postgresql.own_columns import check_own_columns
from kainite.targets.postgresql.pooling import OWN_POOL, leads_through_pooler
from kainite.targets.postgresql.text_forms import as_local_settings
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence, fence_lost, outranked
from kainite_spark.targets.hooks import FoundHooks, Hook, HookPolicy, refusal, tell_firing, tell_switched_off
from kainite_spark.targets.mark import TargetMark, check_mark
from kainite_spark.targets.postgresql import ledger
from kainite_spark.targets.postgresql.claims import WriteClaim, claim_of
from kainite_spark.targets.postgresql.column_types import ColumnTypes, changed
from kainite_spark.targets.postgresql.driver_connection import DriverConnection
from kainite_spark.targets.postgresql.errors import about_own_tables, about_units, is_about_foreign_key
from kainite_spark.targets.postgresql.firing_hooks import KnownHooks, firing, found_hooks, reached
from kainite_spark.targets.postgresql.hook_switch import not_ours_to_disable, switch_off, switch_on, switched_off
from kainite_spark.targets.postgresql.loaded_tables import LoadedTables, NewUnits, is_cut_over, refuse_while_loading
from kainite_spark.targets.postgresql.rendering import MOST_BYTES, cut, fixed_columns, parameters, render
from kainite_spark.targets.schema import Schema
from kainite_spark.targets.statements.emptied_tables import EmptyingPlanner
from kainite_spark.targets.statements.planner import Planner, Statement, StatementShape
from kainite_spark.targets.statements.row_counts import check_rows
from kainite_spark.targets.statements.unit_values import values_refused

_LOG = logging.getLogger(__name__)

ROW_WAIT_S = 1
"""How long a task waits for a lock, in seconds: a group of 500 units with one locked row is cut in two nine
times, and each part with the locked row waits for it."""

_FENCE_WAIT_S = 30
"""How long the driver waits for the transactions of a micro-batch before, in seconds."""

_PINNED = f"""
    SELECT set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', '60s', true),
           {as_local_settings()}"""
"""The first statement of each transaction. A session's own settings do not last: a trigger may change them, and behind
a pooler each transaction may be in another session. The second one limits how long others wait for a task that hangs.
"""

_OWN_PATH = "SET LOCAL search_path TO DEFAULT"
"""Kainite's tables are named without a schema: they are on the search path of the role or of the database."""

_ELSEWHERE = """
    SELECT array_agg(relnamespace::regnamespace::text ORDER BY relnamespace) FROM pg_class
    WHERE relname = 'kainite_fence' AND relkind IN ('r', 'p') HAVING to_regclass('kainite_fence') IS NULL"""

_TRIES = 3
"""Tries of a transaction while columns get other types."""

_PLAN_ANEW = "DISCARD PLANS"
"""PostgreSQL keeps the plans by which it checks foreign keys for the life of a session, or until it analyzes the table.
A check that was planned while the table was nearly empty reads all of it for each row: with order entry PostgreSQL
took 1,533 microseconds of processor time a unit, and takes 214 with plans that are made for each transaction."""


# Two sessions that run CREATE TABLE IF NOT EXISTS at the same time may fail in the system catalogue.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('kainite_applied'))"

_Plan: TypeAlias = Callable[[Collection[str]], Iterable[Statement]]
"""Makes the statements of a transaction, given the tables of which a change may fire a trigger or a rule."""


class _OutdatedHooksError(Exception):
    """Other triggers fire than those that the transaction's statements were made for."""


class _OutdatedTypesError(Exception):
    """Columns have got other types than those that the transaction's statements spell."""


class PostgresSession:
    """One connection, one transaction at a time; implements :class:`kainite_spark.targets.contract.TargetSession`."""

    def __init__(self, url: str, schema: Schema, policy: HookPolicy) -> None:
        self._url = url
        self._schema = schema
        self._hooks = KnownHooks(schema.catalogue, policy)
        planner = Planner(schema.catalogue, schema.levels)
        self._planner = EmptyingPlanner(planner, schema.catalogue, schema.levels)
        self._loaded = LoadedTables(schema.catalogue)
        self._types = ColumnTypes()
        self._sql: dict[StatementShape, str] = {}
        self._connection: psycopg.Connection | None = None

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        with self._transaction() as connection:
            _pin(connection, ROW_WAIT_S)
            return {tid for (tid,) in connection.execute(ledger.APPLIED, (log_partition, list(tids)))}

    def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        if units:
            self._apply_new(
                fence, units, lambda new, hooked: self._planner.plan(new.units, folded=folded, hooked=hooked)
            )

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        """Applies a unit change by change; rows that name each other together, if a foreign key refuses them alone.

        A source with the same foreign key has made such changes by one statement, or has deferred the check.
        """
        try:
            self._apply_new(fence, (unit,), lambda new, _: self._planner.one_by_one(new.units[0]))
        except TargetRejectedError as refused:
            if not is_about_foreign_key(refused.__cause__) or not self._planner.has_runs(unit):
                raise
            try:
                self._apply_new(fence, (unit,), lambda new, _: self._planner.in_runs(new.units[0]))
            except TargetRejectedError:
                raise refused from refused.__cause__

    def catch_up(self, claim: WriteClaim, units: Sequence[Unit]) -> None:
        """Applies what was held of units, change by change, in one transaction; raises as :meth:`apply`."""
        self._apply(claim, lambda _: chain.from_iterable(map(self._planner.one_by_one, units)))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def open(self) -> psycopg.Connection:
        """Returns the connection, which it opens if there is none; raises TargetUnavailableError."""
        if self._connection is None or self._connection.closed:
            self._connection = _connect(self._url)
        return self._connection

    def _apply_new(
        self, fence: Fence, units: Sequence[Unit], planned: Callable[[NewUnits, Collection[str]], Iterable[Statement]]
    ) -> None:
        """Applies units without what a load of the target has brought already, and holds what is for later."""
        if not self._loaded.is_known(fence):
            self._read_loaded(fence)
        for _ in range(_TRIES):
            new = self._loaded.what_is_new(units)
            try:
                return self._apply(claim_of(fence, units, new, self._loaded.version), partial(planned, new))
            except TargetFencedError:
                if not self._read_loaded(fence):
                    raise
        raise TargetBusyError("PostgreSQL: loads of single tables begin and end again and again")

    def _read_loaded(self, fence: Fence) -> bool:
        """Reads the tables' states; tells whether they are others than before."""
        with self._transaction() as connection:
            _pin(connection, ROW_WAIT_S)
            return self._loaded.read(connection, fence)

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

    def _apply(self, claim: WriteClaim, planned: _Plan) -> None:
        for _ in range(_TRIES):
            try:
                return self._apply_once(claim, planned)
            except _OutdatedHooksError:
                self._hooks.forget()
            except _OutdatedTypesError:
                self._forget_types()
            except TargetRejectedError:
                if not self._outdated():
                    raise
                self._forget_types()
                self._hooks.forget()
        raise TargetBusyError("PostgreSQL: columns get other types, or tables other triggers, again and again")

    def _outdated(self) -> bool:
        with self._transaction() as connection:
            _pin(connection, ROW_WAIT_S)
            if self._hooks.changed(self._hooks.ask(connection)):
                return True
            return changed(self._types.ask(connection, self._types.tables))

    def _forget_types(self) -> None:
        self._types.forget()
        self._sql.clear()

    def _apply_once(self, claim: WriteClaim, planned: _Plan) -> None:
        with self._transaction() as connection:
            if not self._hooks.are_known:
                _pin(connection, ROW_WAIT_S)
            found = self._hooks.read(connection)
            sent = _Sent(claim, self._schema.catalogue)
            try:
                with connection.pipeline(), values_refused():
                    self._send(connection, sent, planned(found.hooked))
            except psycopg.Error as error:
                raise sent.failure(error) from error
            sent.check()
            if sent.hooks is not None and self._hooks.changed(sent.hooks):
                raise _OutdatedHooksError

    def _send(self, connection: psycopg.Connection, sent: _Sent, statements: Iterable[Statement]) -> None:
        claim = sent.claim
        _pin(connection, ROW_WAIT_S)
        connection.execute(_PLAN_ANEW)
        sent.claimed = connection.execute(*claim.statement)
        for beside in claim.beside:
            connection.execute(*beside)
        if self._schema.cyclic:
            connection.execute("SET CONSTRAINTS ALL DEFERRED")
        for statement in statements if 0 < claim.size <= MOST_BYTES else _cut(statements):
            shape = statement.shape
            sql = self._sql.get(shape)
            if sql is None:
                table = self._types.table(connection, self._schema.catalogue.tables[shape.table])
                sql = self._sql[shape] = render(shape, table)
            sent.cursors.append((statement, connection.execute(sql, parameters(shape, statement.deltas))))
            if statement.settles:
                self._hooks.settle(connection, cyclic=self._schema.cyclic)
        if sent.cursors:
            sent.hooks = self._hooks.ask(connection)
            sent.types = self._types.ask(connection, {statement.shape.table for statement, _ in sent.cursors})


@dataclass(slots=True)
class _Sent:
    """The statements that a transaction has sent, with their results."""

    claim: WriteClaim
    catalogue: Catalogue
    claimed: psycopg.Cursor | None = None
    types: psycopg.Cursor | None = None
    hooks: psycopg.Cursor | None = None
    cursors: list[tuple[Statement, psycopg.Cursor]] = field(default_factory=list)

    def check(self) -> None:
        """Raises unless every statement touched a row for every delta and the fence was right."""
        if self._fence_lost():
            raise self.claim.lost
        if self.types is not None and changed(self.types):
            raise _OutdatedTypesError
        for statement, cursor in self.cursors:
            shape = statement.shape
            check_rows(statement, cursor.rowcount, fixed_columns(shape, self.catalogue.tables[shape.table]))

    def failure(self, error: psycopg.Error) -> TargetError:
        """Returns Kainite's error for an error in the pipeline; a lost fence comes first, as it explains all others."""
        if self._fence_lost():
            return self.claim.lost
        if isinstance(error, errors.UniqueViolation) and error.diag.table_name == "kainite_applied":
            return self.claim.repeated
        if self.claimed is None or self.claimed.pgresult is None:
            return about_own_tables(error)
        failed = (statement.shape.table for statement, cursor in self.cursors if cursor.pgresult is None)
        return about_units(error, next(failed, None))

    def _fence_lost(self) -> bool:
        cursor = self.claimed
        return cursor is not None and cursor.pgresult is not None and cursor.rowcount != self.claim.rows


@dataclass(frozen=True, slots=True)
class PostgresTarget:
    """A PostgreSQL database; implements :class:`kainite_spark.targets.contract.Target`.

    Attributes:
        url: ``postgresql://…``, as libpq takes it; ``repr`` leaves it out, since it may hold a password.
        schema: the database's tables.
        policy: which triggers and rules may fire.
        driver: the connection of all methods but ``connect``, which one thread calls.
    """

    url: str = field(repr=False)
    schema: Schema
    policy: HookPolicy = field(default_factory=HookPolicy)
    driver: DriverConnection = field(default_factory=DriverConnection, repr=False, compare=False)

    def connect(self) -> PostgresSession:
        session = PostgresSession(self.url, self.schema, self.policy)
        session.open()
        return session

    def prepare(self, catalogue: Catalogue) -> None:
        Schema.of(catalogue)
        self._tell_pooler()
        with self._transaction() as connection:
            connection.execute(_ONE_AT_A_TIME)
            elsewhere = connection.execute(_ELSEWHERE).fetchone()
            if elsewhere is not None and elsewhere[0]:
                told = "Kainite's tables are in other schemas, and are made anew"
                event(_LOG, logging.WARNING, told, schemas=", ".join(elsewhere[0]))
            connection.execute(ledger.CREATE_APPLIED)
            connection.execute(ledger.CREATE_FENCE)
            check_own_columns(connection, (ledger.CREATE_APPLIED, ledger.CREATE_FENCE))
            self._look_at_hooks(connection)

    def hooks(self) -> FoundHooks:
        with self._transaction() as connection:
            where = reached(connection, self.schema.catalogue)
            fire = firing(connection, where)
            found = found_hooks(fire, switched_off(connection))
        unwanted = self.policy.unwanted(found.firing)
        if self.policy.triggers is TargetTriggers.OFF:
            return replace(found, why_refused=not_ours_to_disable(fire, unwanted))
        return replace(found, why_refused=refusal(unwanted) if unwanted else None)

    def switch_on(self) -> Sequence[Hook]:
        with self._transaction() as connection:
            connection.execute(_ONE_AT_A_TIME)
            return switch_on(connection)

    def _tell_pooler(self) -> None:
        try:
            pooled = leads_through_pooler(lambda: connect(self.url, "kainite apply"))
        except psycopg.Error as error:
            raise about_own_tables(error) from error
        if pooled:
            event(_LOG, logging.WARNING, "the target is behind a pooler in transaction mode", remedy=OWN_POOL)

    def _look_at_hooks(self, connection: psycopg.Connection) -> None:
        """Switches off what may not fire, if the policy says so; refuses what is left of it.

        Of a target that was cut over nothing is touched: whoever begins there is refused by its fence.
        """
        if is_cut_over(connection):
            return
        where = reached(connection, self.schema.catalogue)
        if self.policy.triggers is TargetTriggers.OFF:
            tell_switched_off(switch_off(connection, where, self.policy))
        firing_now = tuple(each.hook for each in firing(connection, where))
        if unwanted := self.policy.unwanted(firing_now):
            raise CatalogueError(refusal(unwanted))
        tell_firing(firing_now)

    def raise_generation(self, log_partition: str, generation: int, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            sent = _compared(connection, log_partition, mark, ledger.RAISE_GENERATION, (log_partition, generation))
            if sent.rowcount != 1:
                raise outranked(log_partition, generation)
            refuse_while_loading(connection, log_partition)

    def begin_micro_batch(self, fence: Fence, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            _advance(connection, ledger.BEGIN_MICRO_BATCH, fence, mark)

    def close_micro_batch(self, fence: Fence, tids: Collection[int], mark: TargetMark | None = None) -> set[int]:
        with self._transaction() as connection:
            _advance(connection, ledger.CLOSE_MICRO_BATCH, fence, mark)
            # A statement of its own, whose snapshot has what the tasks committed while the fence waited for them.
            return {tid for (tid,) in connection.execute(ledger.APPLIED, (fence.log_partition, list(tids)))}

    def trim(self, fence: Fence, below: int, mark: TargetMark | None = None) -> int:
        with self._transaction() as connection:
            _advance(connection, ledger.CLOSE_MICRO_BATCH, fence, mark)
            return connection.execute(ledger.TRIM, (fence.log_partition, below)).rowcount

    def close(self) -> None:
        self.driver.close()

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection]:
        """Runs a short transaction on the driver's connection."""
        try:
            with self.driver.transaction(lambda: _connect(self.url)) as connection:
                _pin(connection, _FENCE_WAIT_S)
                yield connection
        except psycopg.Error as error:
            raise about_own_tables(error) from error


def _pin(connection: psycopg.Connection, lock_wait: int) -> None:
    """Gives the transaction its settings, before any other statement of it."""
    connection.execute(_OWN_PATH)
    connection.execute(_PINNED, (f"{lock_wait}s",))


def _cut(statements: Iterable[Statement]) -> Iterator[Statement]:
    return (part for statement in statements for part in cut(statement, MOST_BYTES))


def _advance(connection: psycopg.Connection, sql: str, fence: Fence, mark: TargetMark | None) -> None:
    values = (fence.micro_batch, fence.log_partition, fence.generation, fence.micro_batch)
    if _compared(connection, fence.log_partition, mark, sql, values).rowcount != 1:
        raise fence_lost(fence)


def _compared(
    connection: psycopg.Connection, log_partition: str, mark: TargetMark | None, sql: str, values: tuple[object, ...]
) -> psycopg.Cursor:
    """Executes what changes the fence, in one round trip with the comparison of the target with the mark.

    Raises:
        TargetWentBackError: the target is behind the mark; the caller rolls back.
    """
    if mark is None:
        return connection.execute(sql, values)
    tids = f"{{{','.join(map(str, mark.tids))}}}"
    with connection.pipeline():
        there = connection.execute(ledger.LOCK_FENCE, (log_partition,))
        # A statement of its own, whose snapshot has what was committed while the first one waited.
        known = connection.execute(ledger.COUNT_APPLIED, (log_partition, tids))
        changing = connection.execute(sql, values)
    counted = known.fetchone()
    check_mark(log_partition, mark, there.fetchone(), counted[0] if counted else 0)
    return changing


def _connect(url: str) -> psycopg.Connection:
    """Opens a connection without prepared statements: a plan made while a table was small would be used for ever.

    ``plan_cache_mode`` is no alternative: it also makes the server plan the foreign keys' checks anew for
    each row, which was measured to double the time of an insert.
    """
    try:
        connection = connect(url, "kainite apply")
        connection.autocommit = False
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    except psycopg.Error as error:
        raise about_own_tables(error) from error
    return connection
