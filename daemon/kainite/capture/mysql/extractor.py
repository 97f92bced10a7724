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

:mod:`~kainite.capture.mysql.source_transactions` turns the binlog into records.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from kainite.base.errors import SourceError
from kainite.capture.heartbeats import Heartbeats
from kainite.capture.mysql.binlog_connection import SILENT_S
from kainite.capture.mysql.heartbeat import TableHeartbeat
from kainite.capture.mysql.offset import BinlogOffset, start_in
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.source import open_source
from kainite.capture.mysql.source_transactions import SourceTransactions
from kainite.capture.mysql.still_there import QUIET_S, check_still_there, not_sent
from kainite.capture.mysql.taken_options import OptionsInForce
from kainite.capture.mysql.units import GivenTransaction
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
        self._transactions: SourceTransactions | None = None
        every = reading.heartbeat
        self._heartbeat = None if every is None else Heartbeats(TableHeartbeat(reading.url), every)
        self._given = BinlogOffset(None, 0)
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
        if self._transactions is None:
            self._begin(start)
        read = self._opened(start)
        if start != self._given:
            raise SourceError(f"asked from {start.as_json()}, after {self._given.as_json()} was given")
        if self._heartbeat is not None:
            self._heartbeat.beat()
        if self._options.change_at(read.ends):
            self._options.change(read.number)
            read.source.reading.read_only(self._options.tables)
            yield self._give(read, ahead=False)
            return
        given: list[GivenTransaction] = []
        yield from self._some(read, given)
        if given:
            self._newest = given[-1].time
            self._note(given)
        else:
            self._look(read)
        if given or self._is_to_advance(read):
            yield self._give(read)

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
        return self._opened(start).number

    def records_up_to(self, start: BinlogOffset, place: BinlogPlace) -> Iterator[bytes]:
        """Yields the records of the transactions before a place that were not given yet, and of no other.

        Args:
            start: an offset before the place, the same for each call.
            place: the end of a transaction.

        Raises:
            SourceError: the source broke, or sends nothing up to the place.
        """
        read = self._opened(start)
        stream, heard = read.source.stream, time.monotonic()
        while (now := stream.place) is None or now.is_before(place):
            # A place may also be reached by what the server says while it has no event.
            if (found := stream.receive(_LONGEST)) is not None:
                heard = time.monotonic()
                yield from read.records(*found, [])
            elif time.monotonic() > heard + SILENT_S:
                raise SourceError(f"the source server has sent its binlog up to {now}, and not up to {place}")

    def close(self) -> None:
        if self._transactions is not None:
            self._transactions.source.close()
        if self._heartbeat is not None:
            self._heartbeat.close()

    def _begin(self, start: BinlogOffset) -> None:
        """Goes on with the options of an offset."""
        source = self._opened(start).source
        self._options.begin(start.options, source.end)
        source.reading.read_only(self._options.tables)

    def _opened(self, start: BinlogOffset) -> SourceTransactions:
        """Returns the source's transactions; opens the connections to it for the first request."""
        if self._transactions is None:
            source = open_source(self._reading.url, start, self._reading.tables)
            self._transactions = SourceTransactions(source, start, self._reading.passed_over, self._options)
            self._given = start
            self._advance_at = time.monotonic() + ADVANCE_EVERY_S
            self._heard()
        return self._transactions

    def _heard(self) -> None:
        """Takes note of an event: the server sends its binlog."""
        self._look_at, self._doubted = time.monotonic() + QUIET_S, False

    def _look(self, read: SourceTransactions) -> None:
        """Asks the server for its binlog where no event has come for long.

        Raises:
            SourceError: it has another binlog, or has twice sent nothing of what it has written.
        """
        source, ends = read.source, read.ends
        if ends is None or time.monotonic() < self._look_at:
            return
        now = source.look(ends)
        doubted, self._look_at = self._doubted, time.monotonic() + QUIET_S
        self._doubted = not check_still_there(source.server, ends, source.gtids.text, now)
        if doubted and self._doubted:
            raise not_sent(ends, now.end)

    def _is_to_advance(self, read: SourceTransactions) -> bool:
        """Tells whether an offset is due without a transaction: also where it does not say whose it is."""
        if read.ends is not None and self._given.source is None:
            return True
        return read.ends != self._given.place and time.monotonic() >= self._advance_at

    def _give(self, read: SourceTransactions, *, ahead: bool = True) -> bytes:
        """Returns the message that gives the offset behind an answer, and whether more may be asked before it is kept.

        With a GTID it is the server's place of now that belongs to an identity: none is given before it is known.
        """
        source, ends = read.source, read.ends
        self._given = BinlogOffset(
            ends, read.number, source.gtids.text, None if ends is None else source.identity, dict(read.prepared),
            self._options.options,
        )  # fmt: skip
        self._advance_at = time.monotonic() + ADVANCE_EVERY_S
        lag = {} if self._newest is None else {"time": self._newest * 10**9}
        return orjson.dumps({"offset": self._given.as_json(), "ahead": ahead, "lag": lag})

    def _some(self, read: SourceTransactions, given: list[GivenTransaction]) -> Iterator[bytes]:
        """Yields the records of whole transactions, up to about one PutRecords call; adds these to ``given``.

        An answer ends between two transactions: what the server has sent of the next is taken to its end first. It ends
        after :data:`_LONGEST` seconds too, while transactions keep coming that have no records: of other databases;
        and where other options hold.
        """
        stream, records, told = read.source.stream, 0, time.monotonic()
        until, latest = told + _IDLE, told + _LONGEST
        while records < _RECORDS or read.inside:
            inside, now = read.inside, time.monotonic()
            late = not inside and (now >= latest or self._options.change_at(stream.place))
            found = None if late else stream.receive(_IDLE if inside else until - now)
            if found is None and not inside:
                read.ends = stream.place
                return
            if found is not None:
                self._heard()
            for record in () if found is None else read.records(*found, given):
                told = time.monotonic()
                until = until if records else told + _LINGER
                records += 1
                yield record
            if found is None or time.monotonic() - told >= _LONGEST:  # within a transaction: this process lives
                told = time.monotonic()
                yield b""

    def _note(self, given: list[GivenTransaction]) -> None:
        if self._reading.journal is None:
            return
        commits = [(unit.uow, unit.time * 10**6, unit.changes) for unit in given]
        with self._reading.journal.open("ab") as file:
            # The newline before the line ends what a killed process may have left unfinished in the same file.
            file.write(b"\n" + orjson.dumps({"commits": commits}) + b"\n")
