"""Answers ``kainite extract``'s requests with the numbered transactions of a MariaDB or MySQL database.

A cyclic extractor with ``extractorOffsets=kainite``. A request is one JSON object; the answer is the records of the
transactions that have committed since, and the new offset::

    {"start":{"file":"binlog.000003","position":4711,"number":16},"end":null}
    {"uow":"my-0-1-42-17","number":17,…}
    {"offset":{"file":"binlog.000003","position":5220,"number":17,"gtid":"0-1-42","source":{…}},"ahead":true,
     "lag":{"time":1705318200000000000}}

It may be asked for more before its answer is on the stream. The extractor stores nothing: the first request of a
process says where to begin, and after a crash of either side the server sends the transactions behind that place
again, which get the same numbers (:mod:`~kainite.capture.mysql.units`) and the same changes, also where it was started
with other options (:mod:`~kainite.capture.mysql.taken_options`).

The extractor refuses another server than the offset's (:mod:`~kainite.capture.mysql.place`), and a binlog that is
thrown away while it is read (:mod:`~kainite.capture.mysql.still_there`). While nothing commits in the
database, the offset moves all the same, each :data:`ADVANCE_EVERY_S` seconds, so that it does not stay in a file that
the server purges.

A prepared XA transaction stands in the binlog before it commits, perhaps days. The offset notes where it begins; when
it commits, its rows are read from there, over a connection of their own.

What the source sends and what no record can carry fails its unit. Where not even that can be said, the extractor ends
with the transaction's GTID, and a person may have exactly this transaction passed over (``--skip-transaction``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson

from kainite.base.errors import SourceError
from kainite.capture.heartbeats import Heartbeats
from kainite.capture.mysql.binlog_connection import SILENT_S
from kainite.capture.mysql.events import Event
from kainite.capture.mysql.heartbeat import TableHeartbeat
from kainite.capture.mysql.offset import BinlogOffset, start_in
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.records import emptied_record
from kainite.capture.mysql.source import Source, open_source
from kainite.capture.mysql.statements import LoggedStatement, Means
from kainite.capture.mysql.still_there import QUIET_S, check_still_there, not_sent
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

_IDLE = 0.2  # seconds that an answer without any transaction may take
_LINGER = 0.03  # waiting a little for more makes fuller PutRecords calls
_LONGEST = 1.0  # seconds without a record after which an answer ends, or says within a transaction that it goes on
_RECORDS = 500  # the most records of a PutRecords call
ADVANCE_EVERY_S = 10.0
"""Seconds between two offsets without a transaction: each one is a write of the offset's place."""


@dataclass(frozen=True, slots=True)
class BinlogReading:
    """How a source is read.

    Attributes:
        url: the database.
        tables: the tables that are read; empty: all of the database.
        on_truncate: what TRUNCATE does.
        passed_over: the GTIDs, or places, of transactions that are not read: their units fail.
        heartbeat: seconds between two heartbeats that are written into the source; None for none.
        journal: a file to which commits are appended; None for no journal.
    """

    url: str
    tables: tuple[str, ...] = ()
    on_truncate: OnTruncate = OnTruncate.FAIL
    passed_over: frozenset[str] = frozenset()
    heartbeat: float | None = None
    journal: Path | None = None


class MysqlExtractor:
    """Answers the requests of one process, one after the other."""

    def __init__(self, reading: BinlogReading) -> None:
        self._reading = reading
        self._options = OptionsInForce(reading.tables, reading.on_truncate)
        self._assembler = BinlogAssembler()
        self._units = HeldUnits(0, time.time_ns)
        self._source: Source | None = None
        every = reading.heartbeat
        self._heartbeat = None if every is None else Heartbeats(TableHeartbeat(reading.url), every)
        self._given = BinlogOffset(None, 0)
        self._gtid = ""
        self._begins: BinlogPlace | None = None  # where the transaction that is being read begins
        self._ends: BinlogPlace | None = None  # nothing that committed before it is still to come
        self._prepared: dict[str, BinlogPlace] = {}
        self._advance_at = 0.0
        self._look_at = 0.0  # when the server is asked for its binlog, unless an event comes before
        self._doubted = False  # whether the server had written on when it was asked
        self._newest: int | None = None  # when the newest transaction that was given committed, seconds

    def answer(self, request: bytes) -> Iterator[bytes]:
        """Yields the messages of one cycle.

        Raises:
            SourceError: the request cannot be answered, or the source broke.
            OSError: the journal cannot be written.
        """
        start = start_in(request)
        if self._source is None:
            self._begin(start)
        source = self._opened(start)
        if start != self._given:
            raise SourceError(f"asked from {start.as_json()}, after {self._given.as_json()} was given")
        if self._heartbeat is not None:
            self._heartbeat.beat()
        if self._options.change_at(self._ends):
            self._options.change(self._units.number)
            source.reading.read_only(self._options.tables)
            yield self._give(source, ahead=False)
            return
        given: list[GivenTransaction] = []
        yield from self._transactions(source, given)
        if given:
            self._newest = given[-1].time
            self._note(given)
        else:
            self._look(source)
        if given or self._is_to_advance():
            yield self._give(source)

    def number_at(self, start: BinlogOffset, place: BinlogPlace) -> int:
        """Reads on from an offset and gives nothing; returns the number of the last transaction before a place.

        Args:
            start: an offset before the place.
            place: the end of a transaction.

        Raises:
            SourceError: the source broke, or sends nothing up to the place.
        """
        for _ in self.records_up_to(start, place):
            pass
        return self._units.number

    def records_up_to(self, start: BinlogOffset, place: BinlogPlace) -> Iterator[bytes]:
        """Yields the records of the transactions before a place that were not given yet, and of no other.

        Args:
            start: an offset before the place, the same for each call.
            place: the end of a transaction.

        Raises:
            SourceError: the source broke, or sends nothing up to the place.
        """
        source = self._opened(start)
        heard = time.monotonic()
        while (now := source.stream.place) is None or now.is_before(place):
            # A place may also be reached by what the server says while it has no event.
            if (found := source.stream.receive(_LONGEST)) is not None:
                heard = time.monotonic()
                yield from self._records(source, *found, [])
            elif time.monotonic() > heard + SILENT_S:
                raise SourceError(f"the source server has sent its binlog up to {now}, and not up to {place}")

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
        if self._heartbeat is not None:
            self._heartbeat.close()

    def _begin(self, start: BinlogOffset) -> None:
        """Goes on with the options of an offset."""
        source = self._opened(start)
        self._options.begin(start.options, source.end)
        source.reading.read_only(self._options.tables)

    def _opened(self, start: BinlogOffset) -> Source:
        """Returns the connections to the source; opens them for the first request."""
        if self._source is None:
            self._source = open_source(self._reading.url, start, self._reading.tables)
            self._units = HeldUnits(start.number, time.time_ns)
            self._given = start
            self._ends, self._prepared = start.place, dict(start.prepared)
            self._advance_at = time.monotonic() + ADVANCE_EVERY_S
            self._heard()
        return self._source

    def _heard(self) -> None:
        """Takes note of an event: the server sends its binlog."""
        self._look_at, self._doubted = time.monotonic() + QUIET_S, False

    def _look(self, source: Source) -> None:
        """Asks the server for its binlog where no event has come for long.

        Raises:
            SourceError: it has another binlog, or has twice sent nothing of what it has written.
        """
        if self._ends is None or time.monotonic() < self._look_at:
            return
        now = source.look(self._ends)
        doubted, self._look_at = self._doubted, time.monotonic() + QUIET_S
        self._doubted = not check_still_there(source.server, self._ends, source.gtids.text, now)
        if doubted and self._doubted:
            raise not_sent(self._ends, now.end)

    def _is_to_advance(self) -> bool:
        """Tells whether an offset is due without a transaction: also where it does not say whose it is."""
        if self._ends is not None and self._given.source is None:
            return True
        return self._ends != self._given.place and time.monotonic() >= self._advance_at

    def _give(self, source: Source, *, ahead: bool = True) -> bytes:
        """Returns the message that gives the offset behind an answer, and whether more may be asked before it is kept.

        With a GTID it is the server's place of now that belongs to an identity: none is given before it is known.
        """
        self._given = BinlogOffset(
            self._ends, self._units.number, source.gtids.text, None if self._ends is None else source.identity,
            dict(self._prepared), self._options.options,
        )  # fmt: skip
        self._advance_at = time.monotonic() + ADVANCE_EVERY_S
        lag = {} if self._newest is None else {"time": self._newest * 10**9}
        return orjson.dumps({"offset": self._given.as_json(), "ahead": ahead, "lag": lag})

    def _transactions(self, source: Source, given: list[GivenTransaction]) -> Iterator[bytes]:
        """Yields the records of whole transactions, up to about one PutRecords call; adds these to ``given``.

        An answer ends between two transactions: what the server has sent of the next is taken to its end first. It ends
        after :data:`_LONGEST` seconds too, while transactions keep coming that have no records: of other databases;
        and where other options hold.
        """
        records, told = 0, time.monotonic()
        until, latest = told + _IDLE, told + _LONGEST
        while records < _RECORDS or self._assembler.inside:
            inside, now = self._assembler.inside, time.monotonic()
            late = not inside and (now >= latest or self._options.change_at(source.stream.place))
            found = None if late else source.stream.receive(_IDLE if inside else until - now)
            if found is None and not inside:
                self._ends = source.stream.place
                return
            if found is not None:
                self._heard()
            for record in () if found is None else self._records(source, *found, given):
                told = time.monotonic()
                until = until if records else told + _LINGER
                records += 1
                yield record
            if found is None or time.monotonic() - told >= _LONGEST:  # within a transaction: this process lives
                told = time.monotonic()
                yield b""

    def _records(
        self, source: Source, event: Event, place: BinlogPlace, given: list[GivenTransaction]
    ) -> Iterator[bytes]:
        """Yields the records that an event brings."""
        with _naming(self._gtid if self._assembler.inside else ""):
            for step in self._assembler.feed(event, place):
                match step:
                    case Begun(gtid, begins):
                        self._gtid, self._begins = gtid, begins
                        self._units.begin(gtid, passed_over=gtid in self._reading.passed_over)
                    case Rows() | UnreadableRows() | LoggedStatement() if self._assembler.prepares:
                        pass  # read again when the transaction commits
                    case Rows() | UnreadableRows() | LoggedStatement():
                        yield from self._within(source, step)
                    case TransactionEnded():
                        yield from self._end(source, step, given)

    def _within(self, source: Source, step: Inside) -> Iterator[bytes]:
        match step:
            case Rows():
                yield from self._changes(source, step)
            case UnreadableRows(why, table) if table is None or source.reading.is_of_database(table):
                yield from self._units.refuse(why)
            case LoggedStatement():
                yield from self._statement(source, step)

    def _changes(self, source: Source, rows: Rows) -> Iterator[bytes]:
        if self._units.passed_over:  # whatever cannot be read in them
            yield from self._units.change(None) if source.reading.is_of_database(rows.table) else ()
            return
        for change in source.reading.changes(rows):
            yield from self._units.change(change)

    def _statement(self, source: Source, statement: LoggedStatement) -> Iterator[bytes]:
        if source.in_lower_case:  # its own names; statements are logged as they were sent
            statement = statement.in_lower_case()
        match statement.means:
            case Means.SAVEPOINT:
                self._units.savepoint(statement.name)
            case Means.ROLLBACK_TO:
                yield from self._units.roll_back_to(statement.name)
            case Means.TRUNCATE if statement.database == source.database:
                source.reading.forget()
                yield from self._emptied(statement.name, read=source.reading.is_read(statement.name))
            case Means.REPLACE:
                source.reading.forget()
                yield from self._replaced(source, statement)
            case Means.CHANGE if statement.is_about(source.database):
                yield from self._units.refuse(
                    f"{statement.name} was logged as a statement, which names no rows: its session had another"
                    " binlog_format than ROW"
                )
            case Means.XA_COMMIT:
                yield from self._prepared_changes(source, statement.name)
            case Means.XA_ROLLBACK:
                self._prepared.pop(statement.name, None)
            case Means.OTHER:
                source.reading.forget()

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

    def _replaced(self, source: Source, statement: LoggedStatement) -> Iterator[bytes]:
        """Fails the unit of a statement by which tables that are read have other rows, or none."""
        tables = statement.tables_of(source.database)
        if read := [name for name in tables if not name or source.reading.is_read(name)]:
            about = ", ".join(name or "all tables" for name in read)
            yield from self._units.refuse(
                f"a change ({statement.name.lower()}) of {about} that cannot be carried: the statement names no rows"
            )
        elif tables:
            yield from self._units.change(None)

    def _end(self, source: Source, ended: TransactionEnded, given: list[GivenTransaction]) -> Iterator[bytes]:
        if self._gtid != str(self._begins):  # one without a GTID is called by its place
            source.gtids.add(self._gtid)
        self._ends = source.stream.place
        if ended.how is Means.XA_END:
            assert self._begins is not None
            self._prepared[ended.xa] = self._begins
            self._units.drop()
            return
        if ended.how is Means.XA_COMMIT and self._begins is not None:  # in one phase
            yield from self._changes_from(source, self._begins)
        for told in self._units.end(ended.time, rolled_back=ended.how is Means.ROLLBACK):
            if isinstance(told, bytes):
                yield told
            else:
                given.append(told)

    def _prepared_changes(self, source: Source, xa: str) -> Iterator[bytes]:
        """Yields the records of an XA transaction, whose rows stand before, where it was prepared."""
        begins = self._prepared.pop(xa, None)
        if begins is None:
            yield from self._units.refuse(f"the XA transaction {xa} was prepared before the extraction began")
            return
        yield from self._changes_from(source, begins)

    def _changes_from(self, source: Source, begins: BinlogPlace) -> Iterator[bytes]:
        with source.another(begins) as inside:
            for step in inside:
                yield from self._within(source, step)

    def _note(self, given: list[GivenTransaction]) -> None:
        if self._reading.journal is None:
            return
        commits = [(unit.uow, unit.time * 10**6, unit.changes) for unit in given]
        with self._reading.journal.open("ab") as file:
            # The newline before the line ends what a killed process may have left unfinished in the same file.
            file.write(b"\n" + orjson.dumps({"commits": commits}) + b"\n")


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
