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
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

import pymysql

from kainite.base.errors import TargetBusyError, TargetRejectedError
from kainite.targets.mariadb.connection import READ_COMMITTED, SESSION, connect
from kainite.uow.catalogue.tables import Table
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence, already_applied, fence_lost
from kainite_spark.targets.hooks import HookPolicy
from kainite_spark.targets.mariadb import ledger
from kainite_spark.targets.mariadb.accepted_values import accepting
from kainite_spark.targets.mariadb.errors import DUPLICATE, about_own_tables, about_units, number_of
from kainite_spark.targets.mariadb.firing_triggers import KnownTriggers
from kainite_spark.targets.mariadb.literals import quoted_text
from kainite_spark.targets.mariadb.packet import FailedStatementError, StatementAnswer, send
from kainite_spark.targets.mariadb.present_tables import PresentTables
from kainite_spark.targets.mariadb.rendering import MOST_CHARACTERS, change, inserts, releases
from kainite_spark.targets.schema import Schema
from kainite_spark.targets.statements.planner import Planner, Statement
from kainite_spark.targets.statements.row_counts import check_rows
from kainite_spark.targets.statements.unit_values import values_refused

ROW_WAIT_S = 1
"""How long a task waits for a lock, in seconds: a group of 500 units with one locked row is cut in two nine
times, and each part with the locked row waits for it."""

_TRIES = 3
"""Tries of a transaction while tables are altered, or get other triggers."""

_OWN = "kainite_applied"

_Plan: TypeAlias = Callable[[Collection[str]], Iterable[Statement]]
"""Makes the statements of a transaction, given the tables of which a change may fire a trigger."""


class _OutdatedError(Exception):
    """Tables are not as they were when the transaction's statements were made."""


class MariadbSession:
    """One connection, one transaction at a time; implements :class:`kainite_spark.targets.contract.TargetSession`."""

    def __init__(self, url: str, schema: Schema, policy: HookPolicy) -> None:
        self._url = url
        self._schema = schema
        self._planner = Planner(schema.catalogue, schema.levels, accepting)
        self._triggers = KnownTriggers(schema.catalogue, policy)
        self._present = PresentTables()
        self._connection: pymysql.connections.Connection | None = None

    def applied(self, log_partition: str, tids: Collection[int]) -> set[int]:
        if not tids:
            return set()
        with self._transaction() as connection, connection.cursor() as cursor:
            cursor.execute(ledger.APPLIED, (log_partition, tuple(tids)))
            return {tid for (tid,) in cursor.fetchall()}

    def apply(self, fence: Fence, units: Sequence[Unit], *, folded: bool = False) -> None:
        if units:
            self._apply(fence, units, lambda hooked: self._planner.plan(units, folded=folded, hooked=hooked))

    def apply_in_source_order(self, fence: Fence, unit: Unit) -> None:
        self._apply(fence, (unit,), lambda _: self._planner.one_by_one(unit))

    def close(self) -> None:
        if self._connection is not None:
            _close(self._connection)
            self._connection = None

    def open(self) -> pymysql.connections.Connection:
        """Returns the connection, which it opens if there is none; raises TargetUnavailableError."""
        if self._connection is None or not self._connection.open:
            try:
                self._connection = connect(self._url)
            except pymysql.Error as error:
                raise about_own_tables(error) from error
        return self._connection

    @contextmanager
    def _transaction(self) -> Iterator[pymysql.connections.Connection]:
        """Runs a transaction, in which the statements of units raise no error of PyMySQL; their commit may."""
        connection = self.open()
        try:
            send(connection, beginning(ROW_WAIT_S))
            yield connection
        except FailedStatementError as failed:
            self._abandon()
            raise about_own_tables(failed.error) from failed.error
        except pymysql.Error as error:
            self._abandon()
            raise about_own_tables(error) from error
        except BaseException:
            self._abandon()
            raise
        try:
            connection.commit()
        except pymysql.Error as error:
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
            except Exception:  # whatever PyMySQL makes of a connection that stands in the middle of an answer
                self.close()

    def _apply(self, fence: Fence, units: Sequence[Unit], planned: _Plan) -> None:
        for _ in range(_TRIES):
            try:
                return self._apply_once(fence, units, planned)
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

    def _apply_once(self, fence: Fence, units: Sequence[Unit], planned: _Plan) -> None:
        with self._transaction() as connection:
            _check_fence(connection, fence)
            hooked = self._triggers.read(connection).hooked
            sent = _SentPackets(connection, fence, self._present, self._schema)
            with values_refused():
                sent.acknowledge(units)
                for statement in planned(hooked):
                    sent.add(statement)
                sent.flush()
            self._check_present(connection, sent.written)

    def _check_present(self, connection: pymysql.connections.Connection, names: Collection[str]) -> None:
        if not names:
            return
        tables = [self._schema.catalogue.tables[name] for name in names]
        *made, triggers = send(connection, [*map(self._present.question, tables), self._triggers.question(tables)])
        if self._present.changed(names, made) or self._triggers.changed(names, triggers.rows):
            raise _OutdatedError


@dataclass(slots=True)
class _SentPackets:
    """The statements of a transaction: those that wait for their packet, and what follows from the answers."""

    connection: pymysql.connections.Connection
    fence: Fence
    present: PresentTables
    schema: Schema
    written: dict[str, None] = field(default_factory=dict)
    _waiting: list[tuple[str, str]] = field(default_factory=list)
    _size: int = 0
    _counts: list[tuple[Statement, Sequence[int]]] = field(default_factory=list)

    def acknowledge(self, units: Sequence[Unit]) -> None:
        """Writes the acknowledgements."""
        partition = quoted_text(self.fence.log_partition)
        rows = (f"({partition}, {unit.tid}, {quoted_text(unit.uow)})" for unit in units)
        self._wait(ledger.ACKNOWLEDGE + ", ".join(rows), _OWN)

    def add(self, statement: Statement) -> None:
        """Adds a statement; sends a packet when enough is waiting.

        Raises:
            TargetError: as :meth:`flush`.
        """
        table = self._table(statement.shape.table)
        self.written[table.name] = None
        if statement.shape.op is Operation.INSERT:
            self._insert(statement, table, statement.deltas)
        elif statement.shape.op is Operation.UPSERT:
            self._upsert(statement, table)
        else:
            self._counts.append((statement, self._add_changes(statement, table)))
        if self._size >= MOST_CHARACTERS:
            self.flush()

    def flush(self) -> Sequence[StatementAnswer]:
        """Sends what is waiting, and checks how many rows it met.

        Raises:
            TargetError: what the first error means, or a delta met no row.
        """
        if not self._waiting:
            return ()
        answers: list[StatementAnswer] = []
        for packet in _packets([sql for sql, _ in self._waiting]):
            try:
                answers += send(self.connection, packet)
            except FailedStatementError as failed:
                _, table = self._waiting[min(len(answers) + len(failed.answers), len(self._waiting) - 1)]
                raise self._meaning(failed.error, table) from failed.error
        for statement, places in self._counts:
            check_rows(statement, sum(answers[place].met for place in places))
        self._waiting, self._counts, self._size = [], [], 0
        return answers

    def _meaning(self, error: pymysql.Error, table: str) -> Exception:
        if table != _OWN:
            return about_units(error, table)
        return already_applied(self.fence) if number_of(error) == DUPLICATE else about_own_tables(error)

    def _wait(self, sql: str, table: str) -> None:
        self._waiting.append((sql, table))
        self._size += len(sql)

    def _insert(self, statement: Statement, table: Table, deltas: Sequence[Delta]) -> None:
        for sql, _ in inserts(statement.shape, table, deltas):
            self._wait(sql, table.name)

    def _add_changes(self, statement: Statement, table: Table) -> Sequence[int]:
        """Adds the statements that change rows; returns their places among those that wait."""
        places = []
        for delta in statement.deltas:
            for sql in releases(statement.shape, table, delta):
                self._wait(sql, table.name)
            places.append(len(self._waiting))
            self._wait(change(statement.shape, table, delta), table.name)
        return places

    def _upsert(self, statement: Statement, table: Table) -> None:
        self.flush()
        places = self._add_changes(statement, table)
        answers = self.flush()
        missed = [delta for delta, place in zip(statement.deltas, places, strict=True) if not answers[place].met]
        if missed:
            self._insert(statement, table, missed)

    def _table(self, name: str) -> Table:
        known = self.present.tables.get(name)
        if known is None:
            self.flush()
            try:
                known = self.present.table(self.connection, self.schema.catalogue.tables[name])
            except FailedStatementError as failed:
                raise about_units(failed.error, name) from failed.error
        return known


def beginning(lock_wait: int) -> list[str]:
    """Returns the first statements of a transaction.

    Args:
        lock_wait: how long it waits for a lock, in seconds.
    """
    return [
        SESSION,
        READ_COMMITTED,
        # How long others wait for a task that hangs is limited too; MySQL has no such setting.
        f"SET SESSION innodb_lock_wait_timeout = {lock_wait}, lock_wait_timeout = {lock_wait}"
        " /*M!100301 , idle_transaction_timeout = 60 */",
        "START TRANSACTION",
    ]


def _check_fence(connection: pymysql.connections.Connection, fence: Fence) -> None:
    """Locks the fence's row; raises TargetFencedError if another fence is there."""
    with connection.cursor() as cursor:
        cursor.execute(ledger.SHARE_FENCE, (fence.log_partition,))
        if cursor.fetchone() != (fence.generation, fence.micro_batch):
            raise fence_lost(fence)


def _packets(statements: Sequence[str]) -> Iterator[list[str]]:
    """Yields statements in packets of few characters, or of a single statement."""
    packet: list[str] = []
    size = 0
    for sql in statements:
        if packet and size + len(sql) > 2 * MOST_CHARACTERS:
            yield packet
            packet, size = [], 0
        packet.append(sql)
        size += len(sql)
    yield packet


def _close(connection: pymysql.connections.Connection) -> None:
    with suppress(pymysql.Error):  # it was closed already
        connection.close()
