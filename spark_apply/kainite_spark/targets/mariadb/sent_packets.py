"""The statements of one transaction of units: packed into packets, sent, and judged by their answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pymysql

from kainite.base.errors import TargetError
from kainite.uow.catalogue.tables import Table
from kainite.uow.delta import Delta, Operation
from kainite_spark.targets.mariadb.errors import DUPLICATE, about_own_tables, about_units, number_of
from kainite_spark.targets.mariadb.packet import FailedStatementError, StatementAnswer, send
from kainite_spark.targets.mariadb.present_tables import PresentTables
from kainite_spark.targets.mariadb.rendering import MOST_CHARACTERS, change, emptying, inserts, releases
from kainite_spark.targets.schema import Schema
from kainite_spark.targets.statements.planner import Statement
from kainite_spark.targets.statements.row_counts import check_rows

_OWN = "kainite_applied"


@dataclass(slots=True)
class SentPackets:
    """The statements of a transaction: those that wait for their packet, and what follows from the answers.

    Attributes:
        connection: in the transaction.
        repeated: raised where a row of Kainite's own is there already: another task has acknowledged a unit.
        present: what the tables are like that the session has written.
        schema: the target's tables.
        written: the tables that the transaction has written.
    """

    connection: pymysql.connections.Connection
    repeated: TargetError
    present: PresentTables
    schema: Schema
    written: dict[str, None] = field(default_factory=dict)
    _waiting: list[tuple[str, str]] = field(default_factory=list)
    _size: int = 0
    _counts: list[tuple[Statement, Sequence[int]]] = field(default_factory=list)

    def add_own(self, statements: Iterable[str]) -> None:
        """Adds statements about Kainite's own tables."""
        for sql in statements:
            self._wait(sql, _OWN)

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
        elif statement.shape.op is Operation.TRUNCATE:
            for sql in emptying(table):
                self._wait(sql, table.name)
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
        return self.repeated if number_of(error) == DUPLICATE else about_own_tables(error)

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
