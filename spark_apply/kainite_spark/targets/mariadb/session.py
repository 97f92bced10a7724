"""A task's connection to MariaDB or MySQL.

A transaction of :meth:`MariadbSession.apply` takes few round trips, since many statements go in one packet: the
settings, the beginning and the fence's row under a shared lock; the acknowledgements, before any data, with the data;
the question whether the tables are still as they were; the commit, once the row counts are right. So

* a task whose fence is gone sees that before it writes anything, and rolls back;
* two tasks that apply the same unit meet at the acknowledgement's key before they touch any data: the second waits,
  then fails there, and not at a row, which would look like the unit's own fault.

The isolation level is READ COMMITTED: nothing is decided by what a transaction read earlier, except for rows that it
has locked. A session reopens a lost connection. If the connection is lost during the commit, the units'
acknowledgements tell whether they are applied. After any error the session rolls back
(:mod:`~kainite_spark.targets.mariadb.errors`).

Settings are pinned in each transaction: a trigger may change them, and behind a proxy each transaction may be in
another session.

A transaction that is only a part of one over several targets is prepared in place of the commit
(:mod:`~kainite_spark.targets.mariadb.prepared`). Then this session alone can finish it, as long as it lives, and
takes no other statement: for anything else the connection is closed, and a new one is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TypeAlias

import pymysql

from kainite.base.errors import TargetBusyError, TargetRejectedError
from kainite.targets.mariadb.connection import READ_COMMITTED, SESSION, connect
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.holding import BeforeCommit
from kainite_spark.targets.hooks import HookPolicy
from kainite_spark.targets.mariadb import ledger, prepared
from kainite_spark.targets.mariadb.accepted_values import accepting
from kainite_spark.targets.mariadb.claims import HeldClaim, MariadbClaim, UnitsClaim
from kainite_spark.targets.mariadb.errors import about_own_tables, about_units
from kainite_spark.targets.mariadb.firing_triggers import KnownTriggers
from kainite_spark.targets.mariadb.loaded_positions import LoadedPositions
from kainite_spark.targets.mariadb.packet import FailedStatementError, send
from kainite_spark.targets.mariadb.present_tables import PresentTables
from kainite_spark.targets.mariadb.sent_packets import SentPackets
from kainite_spark.targets.preparing import PreparedPart
from kainite_spark.targets.schema import Schema
from kainite_spark.targets.statements.emptied_tables import EmptyingPlanner
from kainite_spark.targets.statements.planner import Planner, Statement
from kainite_spark.targets.statements.unit_values import values_refused
from kainite_spark.targets.units_transaction import units_transaction

ROW_WAIT_S = 1
"""How long a task waits for a lock, in seconds: a group of 500 units with one locked row is cut in two nine
times, and each part with the locked row waits for it."""

IDLE_S = 60
"""How long a transaction, or one that is prepared, may keep its session without a statement: its task hangs."""

_TRIES = 3
"""Tries of a transaction while tables are altered, or get other triggers."""

_Plan: TypeAlias = Callable[[Sequence[Unit], Collection[str]], Iterable[Statement]]
"""Makes the statements of a transaction, given the units with the deltas that are to be applied, and the tables of
which a change may fire a trigger."""


class _OutdatedError(Exception):
    """Tables are not as they were when the transaction's statements were made."""


class MariadbSession:
    """One connection, one transaction at a time; a :class:`kainite_spark.targets.preparing.PreparingSession`."""

    def __init__(self, url: str, schema: Schema, policy: HookPolicy) -> None:
        self._url = url
        self._schema = schema
        planner = Planner(schema.catalogue, schema.levels, accepting)
        self._planner = EmptyingPlanner(planner, schema.catalogue, schema.levels)
        self._triggers = KnownTriggers(schema.catalogue, policy)
        self._loaded = LoadedPositions(schema.catalogue)
        self._present = PresentTables()
        self._connection: pymysql.connections.Connection | None = None
        self._gid: str | None = None  # under which units are prepared at present; None: they are committed
        self._held: str | None = None  # what the connection has prepared, and has to finish
        self._before_commit: BeforeCommit | None = None

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        if not tids:
            return set()
        with self._transaction() as connection, connection.cursor() as cursor:
            cursor.execute(ledger.APPLIED, (log_partition, tuple(tids)))
            return {tid for (tid,) in cursor.fetchall()}

    def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        if units:
            self._apply(fence, units, lambda new, hooked: self._planner.plan(new, folded=folded, hooked=hooked))

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        self._apply(fence, (unit,), lambda new, _: self._planner.one_by_one(new[0]))

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

    def catch_up(self, load: str, generation: int, places: Sequence[int], units: Sequence[Unit]) -> None:
        """Implements :meth:`kainite_spark.load.catch_up.CatchingUp.catch_up`."""
        claim = HeldClaim(load, generation, places, units)
        self._write(claim, lambda new, _: chain.from_iterable(map(self._planner.one_by_one, new)))

    def prepared(self, prefix: str) -> Sequence[PreparedPart]:
        with self._outside_of_units() as connection:
            return prepared.prepared_under(connection, prefix)

    def finish(self, gid: str, *, committed: bool) -> bool:
        if gid == self._held:
            self._held = None  # so that the connection is kept, for the statement that it waits for
        with self._outside_of_units() as connection:
            return prepared.finish(connection, gid, committed=committed)

    def close(self) -> None:
        if self._connection is not None:
            _close(self._connection)
            self._connection = self._held = None

    def open(self) -> pymysql.connections.Connection:
        """Returns a connection that takes statements; opens one if there is none; raises TargetUnavailableError."""
        if self._held is not None:
            self.close()
        if self._connection is None or not self._connection.open:
            try:
                self._connection = connect(self._url)
            except pymysql.Error as error:
                raise about_own_tables(error) from error
        return self._connection

    @contextmanager
    def _preparing(self, gid: str) -> Iterator[None]:
        """Lets transactions of units end by being prepared, while entered."""
        self._gid = gid
        try:
            yield
        finally:
            self._gid = None

    @contextmanager
    def _outside_of_units(self) -> Iterator[pymysql.connections.Connection]:
        """Gives the connection, in no transaction of units; closes it after an error."""
        try:
            yield self.open()
        except FailedStatementError as failed:
            self.close()
            raise about_own_tables(failed.error) from failed.error

    @contextmanager
    def _transaction(self, gid: str | None = None) -> Iterator[pymysql.connections.Connection]:
        """Runs a transaction, in which the statements of units raise no error of PyMySQL; their commit may.

        Args:
            gid: the identifier under which it is prepared in place of the commit.
        """
        connection = self.open()
        ending = connection if gid is None else prepared.Preparation(connection, gid)
        with units_transaction(
            ending, self.close, pymysql.Error, about_own_tables, lambda error: about_units(error, None)
        ):
            try:
                send(connection, beginning(ROW_WAIT_S, gid))
                yield connection
            except FailedStatementError as failed:
                raise failed.error from failed
        self._held = gid

    def _apply(self, fence: Fence, units: Sequence[Unit], planned: _Plan) -> None:
        self._write(UnitsClaim(fence, units, self._loaded, self._gid), planned)

    def _write(self, claim: MariadbClaim, planned: _Plan) -> None:
        for _ in range(_TRIES):
            try:
                return self._write_once(claim, planned)
            except _OutdatedError:
                self._forget()
            except TargetRejectedError:
                if not self._outdated():
                    raise
                self._forget()
        raise TargetBusyError("MariaDB: tables are altered, or get other triggers, again and again")

    def _forget(self) -> None:
        self._present.forget()
        self._triggers.forget()

    def _outdated(self) -> bool:
        """Returns whether a table that the session has written is not as it was, after a refusal."""
        names = list(self._present.definitions)
        if not names:
            return False
        with self._transaction() as connection:
            tables = [self._schema.catalogue.tables[name] for name in names]
            try:
                *made, triggers = send(
                    connection, [*map(self._present.question, tables), self._triggers.question(tables)]
                )
            except FailedStatementError as failed:
                if len(failed.answers) < len(tables):  # a table is gone
                    return True
                raise
            return self._present.changed(names, made) or self._triggers.changed(names, triggers.rows)

    def _write_once(self, claim: MariadbClaim, planned: _Plan) -> None:
        with self._transaction(self._gid) as connection:
            new = claim.take(connection)
            hooked = self._triggers.read(connection).hooked
            sent = SentPackets(connection, claim.repeated, self._present, self._schema)
            with values_refused():
                sent.add_own(claim.before())
                for statement in planned(new, hooked):
                    self._triggers.check(statement.shape.table)
                    sent.add(statement)
                sent.add_own(claim.behind())
                sent.flush()
            self._check_present(connection, sent.written)
            if self._before_commit is not None:
                self._before_commit()

    def _check_present(self, connection: pymysql.connections.Connection, names: Collection[str]) -> None:
        if not names:
            return
        tables = [self._schema.catalogue.tables[name] for name in names]
        *made, triggers = send(connection, [*map(self._present.question, tables), self._triggers.question(tables)])
        if self._present.changed(names, made) or self._triggers.changed(names, triggers.rows):
            raise _OutdatedError


def beginning(lock_wait: int, gid: str | None = None) -> list[str]:
    """Returns the first statements of a transaction.

    Args:
        lock_wait: how long it waits for a lock, in seconds.
        gid: the identifier under which it is going to be prepared; None for one that is going to be committed.
    """
    return [
        SESSION,
        READ_COMMITTED,
        # How long others wait for a task that hangs is limited too; MySQL has no such setting.
        f"SET SESSION innodb_lock_wait_timeout = {lock_wait}, lock_wait_timeout = {lock_wait}"
        f" /*M!100301 , idle_transaction_timeout = {IDLE_S} */",
        "START TRANSACTION" if gid is None else f"XA START {prepared.xid_of(gid)}",
    ]


def _close(connection: pymysql.connections.Connection) -> None:
    with suppress(pymysql.Error):  # it was closed already
        connection.close()
