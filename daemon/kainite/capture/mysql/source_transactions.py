"""Turns what the binlog has of transactions into the records of their units.

A prepared XA transaction stands in the binlog before it commits, perhaps days. Where it begins is noted, for the
offset; when it commits, its rows are read from there, over a connection of their own.

What the source sends and what no record can carry fails its unit. Where not even that can be said, the reading ends
with the transaction's GTID, and a person may have exactly this transaction passed over (``--skip-transaction``).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial

from kainite.base.errors import SourceError
from kainite.capture.mysql.events import Event
from kainite.capture.mysql.offset import BinlogOffset
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.records import emptied_record
from kainite.capture.mysql.source import Source
from kainite.capture.mysql.statements import LoggedStatement, Means
from kainite.capture.mysql.taken_options import OptionsInForce
from kainite.capture.mysql.transactions import (
    Begun,
    BinlogAssembler,
    Inside,
    Rows,
    TransactionEnded,
    UnreadableRows,
)
from kainite.capture.mysql.units import GivenTransaction, HeldUnits
from kainite.capture.truncate import OnTruncate


class SourceTransactions:
    """The transactions of one source, from an offset on.

    Args:
        source: the connections to it.
        start: the offset.
        passed_over: the GTIDs, or places, of transactions that are not read: their units fail.
        options: the options in force.

    Attributes:
        source: the connections.
        ends: nothing that committed before this place is still to come; None before any place is known.
        prepared: where each XA transaction begins that is prepared and did not end.
    """

    def __init__(
        self, source: Source, start: BinlogOffset, passed_over: Collection[str], options: OptionsInForce
    ) -> None:
        self.source = source
        self.ends = start.place
        self.prepared = dict(start.prepared)
        self._passed_over = passed_over
        self._options = options
        self._assembler = BinlogAssembler()
        self._units = HeldUnits(start.number, time.time_ns)
        self._gtid = ""
        self._begins: BinlogPlace | None = None  # where the transaction that is being read begins

    @property
    def number(self) -> int:
        """Returns the number of the last unit that was given."""
        return self._units.number

    @property
    def inside(self) -> bool:
        """Tells whether a transaction has begun and not ended."""
        return self._assembler.inside

    def records(self, event: Event, place: BinlogPlace, given: list[GivenTransaction]) -> Iterator[bytes]:
        """Yields the records that an event brings; adds the transactions that it ends to ``given``.

        Raises:
            SourceError: the transaction cannot be read; the message has what passes it over.
        """
        with _naming(self._gtid if self._assembler.inside else ""):
            for step in self._assembler.feed(event, place):
                match step:
                    case Begun(gtid, begins):
                        self._gtid, self._begins = gtid, begins
                        self._units.begin(gtid, passed_over=gtid in self._passed_over)
                    case Rows() | UnreadableRows() | LoggedStatement() if self._assembler.prepares:
                        pass  # read again when the transaction commits
                    case Rows() | UnreadableRows() | LoggedStatement():
                        yield from self._within(step)
                    case TransactionEnded():
                        yield from self._end(step, given)

    def _within(self, step: Inside) -> Iterator[bytes]:
        match step:
            case Rows():
                yield from self._changes(step)
            case UnreadableRows(why, table) if table is None or self.source.reading.is_of_database(table):
                yield from self._units.refuse(why)
            case LoggedStatement():
                yield from self._statement(step)

    def _changes(self, rows: Rows) -> Iterator[bytes]:
        if self._units.passed_over:  # whatever cannot be read in them
            yield from self._units.change(None) if self.source.reading.is_of_database(rows.table) else ()
            return
        for change in self.source.reading.changes(rows):
            yield from self._units.change(change)

    def _statement(self, statement: LoggedStatement) -> Iterator[bytes]:
        if self.source.in_lower_case:  # its own names; statements are logged as they were sent
            statement = statement.in_lower_case()
        match statement.means:
            case Means.SAVEPOINT:
                self._units.savepoint(statement.name)
            case Means.ROLLBACK_TO:
                yield from self._units.roll_back_to(statement.name)
            case Means.TRUNCATE if statement.database == self.source.database:
                self.source.reading.forget()
                yield from self._emptied(statement.name, read=self.source.reading.is_read(statement.name))
            case Means.REPLACE:
                self.source.reading.forget()
                yield from self._replaced(statement)
            case Means.CHANGE if statement.is_about(self.source.database):
                yield from self._units.refuse(
                    f"{statement.name} was logged as a statement, which names no rows: its session had another"
                    " binlog_format than ROW"
                )
            case Means.XA_COMMIT:
                yield from self._prepared_changes(statement.name)
            case Means.XA_ROLLBACK:
                self.prepared.pop(statement.name, None)
            case Means.OTHER:
                self.source.reading.forget()

    def _emptied(self, table: str, *, read: bool) -> Iterator[bytes]:
        match self._options.on_truncate:
            case OnTruncate.FAIL if read:
                yield from self._units.refuse(
                    f"a change (truncate) of {table} that cannot be carried: TRUNCATE names no rows"
                )
            case OnTruncate.APPLY if read:
                yield from self._units.change(partial(emptied_record, relation=table))
            case _:
                yield from self._units.change(None)

    def _replaced(self, statement: LoggedStatement) -> Iterator[bytes]:
        """Fails the unit of a statement by which tables that are read have other rows, or none."""
        tables = statement.tables_of(self.source.database)
        if read := [name for name in tables if not name or self.source.reading.is_read(name)]:
            about = ", ".join(name or "all tables" for name in read)
            yield from self._units.refuse(
                f"a change ({statement.name.lower()}) of {about} that cannot be carried: the statement names no rows"
            )
        elif tables:
            yield from self._units.change(None)

    def _end(self, ended: TransactionEnded, given: list[GivenTransaction]) -> Iterator[bytes]:
        if self._gtid != str(self._begins):  # one without a GTID is called by its place
            self.source.gtids.add(self._gtid)
        self.ends = self.source.stream.place
        if ended.how is Means.XA_END:
            assert self._begins is not None
            self.prepared[ended.xa] = self._begins
            self._units.drop()
            return
        if ended.how is Means.XA_COMMIT and self._begins is not None:  # in one phase
            yield from self._changes_from(self._begins)
        for told in self._units.end(ended.time, rolled_back=ended.how is Means.ROLLBACK):
            if isinstance(told, bytes):
                yield told
            else:
                given.append(told)

    def _prepared_changes(self, xa: str) -> Iterator[bytes]:
        """Yields the records of an XA transaction, whose rows stand before, where it was prepared."""
        begins = self.prepared.pop(xa, None)
        if begins is None:
            yield from self._units.refuse(f"the XA transaction {xa} was prepared before the extraction began")
            return
        yield from self._changes_from(begins)

    def _changes_from(self, begins: BinlogPlace) -> Iterator[bytes]:
        with self.source.another(begins) as inside:
            for step in inside:
                yield from self._within(step)


@contextmanager
def _naming(gtid: str) -> Iterator[None]:
    """Makes what is wrong with a transaction name it, and what helps."""
    try:
        yield
    except SourceError as error:
        if not gtid:
            raise
        raise SourceError(
            f"transaction {gtid} cannot be extracted: {error}; the option --skip-transaction {gtid} passes exactly this"
            " transaction over: its unit fails under its number, and the extraction goes on"
        ) from error
