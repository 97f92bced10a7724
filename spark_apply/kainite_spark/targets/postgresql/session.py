"""A task's connection to PostgreSQL, by psycopg 3.

A transaction of :meth:`PostgresSession.apply` takes two round trips: all statements in one pipeline, then
the commit once the row counts are right. Before any data, one statement both locks the fence's row (FOR SHARE)
and writes the acknowledgements, so that

* a task whose fence is gone writes no acknowledgement, sees that by the row count, and rolls back;
* two tasks that apply the same unit meet at the acknowledgement's key before they touch any data:
  the second waits, then fails there, and not at a row, which would look like the unit's own fault.

A session reopens a lost connection. If the connection is lost during the commit, the units'
acknowledgements tell whether they are applied. Constraints stay on; which triggers fire, and that it is no other ones
than the statements were made for, is :mod:`~kainite_spark.targets.postgresql.firing_hooks`'s.

Each transaction begins with settings of its own (:func:`~kainite_spark.targets.postgresql.transactions.pin`).

Values are read by the types that columns have now (:mod:`~kainite_spark.targets.postgresql.column_types`): the
transaction's last statement asks whether the types that its statements spell are outdated. Then it is rolled back
and made once more with others. So is a refused one whose types turn out to be outdated.

A transaction that is only a part of one over several targets ends with ``PREPARE TRANSACTION`` in place of the commit
(:mod:`kainite_spark.targets.preparing`); deferred constraints are checked there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import chain
from typing import TypeAlias

import psycopg

from kainite.base.errors import TargetBusyError, TargetFencedError, TargetRejectedError
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.held_deltas import NewUnits
from kainite_spark.targets.holding import BeforeCommit
from kainite_spark.targets.hooks import HookPolicy
from kainite_spark.targets.postgresql import ledger, prepared
from kainite_spark.targets.postgresql.claims import WriteClaim, claim_of, claim_of_held
from kainite_spark.targets.postgresql.column_types import ColumnTypes, changed
from kainite_spark.targets.postgresql.errors import about_own_tables, about_units, is_about_foreign_key
from kainite_spark.targets.postgresql.firing_hooks import KnownHooks
from kainite_spark.targets.postgresql.loaded_tables import LoadedTables
from kainite_spark.targets.postgresql.rendering import MOST_BYTES, cut, parameters, render
from kainite_spark.targets.postgresql.sent_statements import OutdatedTypesError, SentStatements
from kainite_spark.targets.postgresql.transactions import ROW_WAIT_S, opened, pin
from kainite_spark.targets.preparing import PreparedPart
from kainite_spark.targets.schema import Schema
from kainite_spark.targets.statements.emptied_tables import EmptyingPlanner
from kainite_spark.targets.statements.planner import Planner, Statement, StatementShape
from kainite_spark.targets.statements.unit_values import values_refused
from kainite_spark.targets.units_transaction import units_transaction

_TRIES = 3
"""Tries of a transaction while columns get other types."""

_PLAN_ANEW = "DISCARD PLANS"
"""PostgreSQL keeps the plans by which it checks foreign keys for the life of a session, or until it analyzes the table.
A check that was planned while the table was nearly empty reads all of it for each row: with order entry PostgreSQL
took 1,533 microseconds of processor time a unit, and takes 214 with plans that are made for each transaction."""

_Plan: TypeAlias = Callable[[Collection[str]], Iterable[Statement]]
"""Makes the statements of a transaction, given the tables of which a change may fire a trigger or a rule."""


class _OutdatedHooksError(Exception):
    """Other triggers fire than those that the transaction's statements were made for."""


class PostgresSession:
    """One connection, one transaction at a time; a :class:`kainite_spark.targets.preparing.PreparingSession`."""

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
        self._gid: str | None = None  # under which units are prepared at present; None: they are committed
        self._before_commit: BeforeCommit | None = None

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        with self._transaction() as connection:
            pin(connection, ROW_WAIT_S)
            asked = log_partition, ledger.array_of_numbers(tids)
            return {tid for (tid,) in connection.execute(ledger.APPLIED, asked)}

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

    @contextmanager
    def before_commit(self, act: BeforeCommit) -> Iterator[None]:
        self._before_commit = act
        try:
            yield
        finally:
            self._before_commit = None

    def prepare(self, fence: Fence, units: Collection[Unit], gid: str, *, folded: bool = False) -> None:
        with self._preparing(gid):
            self.apply(fence, tuple(units), folded=folded)

    def prepare_in_source_order(self, fence: Fence, unit: Unit, gid: str) -> None:
        with self._preparing(gid):
            self.apply_in_source_order(fence, unit)

    def prepared(self, prefix: str) -> Sequence[PreparedPart]:
        with self._transaction() as connection:
            return prepared.prepared_under(connection, prefix)

    def finish(self, gid: str, *, committed: bool) -> bool:
        connection = self.open()
        try:
            connection.autocommit = True
            found = prepared.finish(connection, gid, committed=committed)
            connection.autocommit = False
        except psycopg.Error as error:
            self.close()
            raise about_own_tables(error) from error
        return found

    def catch_up(self, load: str, generation: int, places: Sequence[int], units: Sequence[Unit]) -> None:
        """Implements :meth:`kainite_spark.load.catch_up.CatchingUp.catch_up`."""
        self._apply(
            claim_of_held(load, generation, places), lambda _: chain.from_iterable(map(self._planner.one_by_one, units))
        )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def open(self) -> psycopg.Connection:
        """Returns the connection, which it opens if there is none; raises TargetUnavailableError."""
        if self._connection is None or self._connection.closed:
            self._connection = opened(self._url)
        return self._connection

    @contextmanager
    def _preparing(self, gid: str) -> Iterator[None]:
        """Lets transactions of units end by being prepared, while entered."""
        self._gid = gid
        try:
            yield
        finally:
            self._gid = None

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
            pin(connection, ROW_WAIT_S)
            return self._loaded.read(connection, fence)

    def _transaction(self) -> AbstractContextManager[psycopg.Connection]:
        """Runs a transaction, in which the statements of units raise no error of psycopg; their commit may."""
        # At the commit: deferred constraints, and deferred triggers.
        return units_transaction(
            self.open(), self.close, psycopg.Error, about_own_tables, lambda error: about_units(error, None)
        )

    def _apply(self, claim: WriteClaim, planned: _Plan) -> None:
        for _ in range(_TRIES):
            try:
                return self._apply_once(claim, planned)
            except _OutdatedHooksError:
                self._hooks.forget()
            except OutdatedTypesError:
                self._forget_types()
            except TargetRejectedError:
                if not self._outdated():
                    raise
                self._forget_types()
                self._hooks.forget()
        raise TargetBusyError("PostgreSQL: columns get other types, or tables other triggers, again and again")

    def _outdated(self) -> bool:
        with self._transaction() as connection:
            pin(connection, ROW_WAIT_S)
            if self._hooks.changed(self._hooks.ask(connection)):
                return True
            return changed(self._types.ask(connection, self._types.tables))

    def _forget_types(self) -> None:
        self._types.forget()
        self._sql.clear()

    def _apply_once(self, claim: WriteClaim, planned: _Plan) -> None:
        with self._transaction() as connection:
            if not self._hooks.are_known:
                pin(connection, ROW_WAIT_S)
            found = self._hooks.read(connection)
            sent = SentStatements(claim, self._schema.catalogue)
            try:
                with connection.pipeline(), values_refused():
                    self._send(connection, sent, planned(found.hooked))
            except psycopg.Error as error:
                raise sent.failure(error) from error
            sent.check()
            if sent.hooks is not None and self._hooks.changed(sent.hooks):
                raise _OutdatedHooksError
            if self._gid is not None:
                _prepare(connection, self._gid)
            if self._before_commit is not None:
                _check_now(connection)
                self._before_commit()

    def _send(self, connection: psycopg.Connection, sent: SentStatements, statements: Iterable[Statement]) -> None:
        claim = sent.claim
        pin(connection, ROW_WAIT_S)
        connection.execute(_PLAN_ANEW)
        sent.claimed = connection.execute(*claim.statement)
        for beside in claim.beside:
            connection.execute(*beside)
        if self._schema.cyclic:
            connection.execute("SET CONSTRAINTS ALL DEFERRED")
        for statement in statements if 0 < claim.size <= MOST_BYTES else _cut(statements):
            shape = statement.shape
            self._hooks.check(shape.table)
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


def _cut(statements: Iterable[Statement]) -> Iterator[Statement]:
    return (part for statement in statements for part in cut(statement, MOST_BYTES))


def _prepare(connection: psycopg.Connection, gid: str) -> None:
    try:
        prepared.prepare(connection, gid)
    except psycopg.Error as error:  # as at a commit: deferred constraints; also what cannot be prepared
        raise about_units(error, None) from error


def _check_now(connection: psycopg.Connection) -> None:
    """Has deferred constraints checked, and deferred triggers fired, which the commit would do."""
    try:
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
    except psycopg.Error as error:
        raise about_units(error, None) from error
