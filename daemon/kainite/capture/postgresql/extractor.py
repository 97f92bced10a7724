"""Answers ``kainite extract``'s requests with the numbered transactions of a PostgreSQL slot.

A cyclic extractor with ``extractorOffsets=kainite``. A request is one JSON object; the answer is the records of the
transactions that have committed since, and the new offset::

    {"start":{"lsn":"0/1718490","number":16},"end":null}
    {"uow":"pg-754-0/17184C0","number":17,…}
    {"offset":{"lsn":"0/17184F0","number":17,"source":{"system":"7390…","timeline":1,"database":"shop"}},"ahead":true,
     "lag":{"time":1705318200123456000,"heldBytes":16777216}}

It may be asked for more before its answer is on the stream. What a request names as ``stored``, or as its start where
it names nothing, is durable: everything before it is on the stream. The extractor acknowledges exactly that much to
PostgreSQL, never more. After a crash of either side PostgreSQL sends the transactions behind it again, and they get
the same numbers. The extractor stores nothing: the first request of a process says where to begin.

An offset says which source it was read from, and the extractor refuses another source
(:mod:`~kainite.capture.postgresql.source_identity`). While nothing of the publication commits, the offset moves all the
same, each :data:`ADVANCE_EVERY_S` seconds, by what the server says that it has sent: a slot that is not advanced holds
back the WAL of the whole cluster.

The server sends a transaction when it has committed, and the extractor gives each change on as it comes: a transaction
of any size takes the memory of its largest change. An answer ends behind a whole transaction, however long that takes.
``kainite extract`` puts the records of a long answer before it is whole; after a crash all of the transaction comes
again. Transactions without changes get no number.

What the source sends and what no record can carry fails its unit (:mod:`~kainite.capture.postgresql.records`). Where
not even that can be said, the extractor ends with the transaction's name, and a person may have exactly this
transaction passed over (``--skip-transaction``): its unit is failed under its number.

``lag`` says when the newest transaction of the answers committed, and how much WAL the server keeps for the slot, asked
for each :data:`ADVANCE_EVERY_S` seconds.

With a heartbeat, the source gets a transaction without changes now and then
(:mod:`~kainite.capture.postgresql.heartbeat`), which becomes a unit of work without deltas.

With a journal, the extractor notes when each transaction committed, before the answer ends. After a kill a transaction
may stand in the journal twice; none is missing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from kainite.base.errors import SourceError
from kainite.capture.heartbeats import Heartbeats
from kainite.capture.postgresql import heartbeat, replication
from kainite.capture.postgresql.heartbeat import MessageHeartbeat
from kainite.capture.postgresql.offset import Offset, places_in
from kainite.capture.postgresql.pgoutput import (
    BeginMessage,
    CommitMessage,
    LogicalMessage,
    Relation,
    decode,
    is_change,
)
from kainite.capture.postgresql.replication import ReplicationStream, SourceSlot
from kainite.capture.postgresql.replication_frames import Data, Frame, format_lsn
from kainite.capture.postgresql.source_catalogue import SlotWal, SourceCatalogue
from kainite.capture.postgresql.transactions import Assembler, SourceTransaction
from kainite.capture.postgresql.units import GivenUnit, NumberedUnits
from kainite.capture.truncate import OnTruncate

# Seconds that an answer without any transaction may take.
_IDLE = 0.2
# Waiting a little for more makes fuller PutRecords calls; the wait is part of the end-to-end latency.
_LINGER = 0.03
_RECORDS = 500  # the most records of a PutRecords call
ADVANCE_EVERY_S = 10.0
"""Seconds between two offsets without a transaction: each one is a write of the offset's place."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a source is read.

    Attributes:
        slot: the slot and publication to read.
        tables: tables, as ``schema.table``, that the publication must have; empty: whatever it has.
        on_truncate: what TRUNCATE does.
        passed_over: the commit LSNs of transactions that are not read: their units fail.
        heartbeat: seconds between two heartbeats that are written into the source; None for none.
        journal: a file to which commits are appended; None for no journal.
    """

    slot: SourceSlot
    tables: tuple[str, ...] = ()
    on_truncate: OnTruncate = OnTruncate.FAIL
    passed_over: frozenset[int] = frozenset()
    heartbeat: float | None = None
    journal: Path | None = None


@dataclass(frozen=True, slots=True)
class _Source:
    """What a process holds open, and the units that it has given from it."""

    stream: ReplicationStream
    catalogue: SourceCatalogue
    units: NumberedUnits
    heartbeat: Heartbeats | None


class PostgresExtractor:
    """Answers the requests of one process, one after the other."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._assembler = Assembler()
        self._opened: _Source | None = None
        self._given = Offset(0, 0)
        self._sent_lsn = 0  # nothing that committed before it is still to come
        self._advance_at = 0.0
        self._newest_us: int | None = None  # when the newest transaction that was given committed
        self._wal = SlotWal(None, None)
        self._wal_at = 0.0

    def answer(self, request: bytes) -> Iterator[bytes]:
        """Yields the messages of one cycle.

        Raises:
            SourceError: the request cannot be answered, or the source broke.
            OSError: the journal cannot be written.
        """
        start, stored = places_in(request)
        source = self._source(start)
        if start != self._given:
            raise SourceError(f"asked from {start.as_json()}, after {self._given.as_json()} was given")
        source.stream.acknowledge(stored.lsn)
        source.catalogue.look()
        if source.heartbeat is not None:
            source.heartbeat.beat()
        given: list[GivenUnit] = []
        yield from self._transactions(source, given)
        if given:
            self._newest_us = given[-1].transaction.commit_us
            self._note(given)
        if given or (self._sent_lsn > self._given.lsn and time.monotonic() >= self._advance_at):
            yield self._give(source, given[-1].end_lsn if given else self._sent_lsn)

    def keep_alive(self) -> None:
        """Tells the server that this process lives, if it is time to; for when nobody takes the answer.

        Raises:
            SourceError: the connection is gone.
        """
        if self._opened is not None:
            self._opened.stream.keep_alive()

    def close(self) -> None:
        if self._opened is not None:
            self._opened.stream.close()
            self._opened.catalogue.close()
            if self._opened.heartbeat is not None:
                self._opened.heartbeat.close()

    def _source(self, start: Offset) -> _Source:
        """Returns the connections to the source; opens them for the first request."""
        if self._opened is None:
            slot = self._reading.slot
            stream = ReplicationStream.open(slot, start.lsn, start.source)
            try:
                catalogue = self._catalogue(start)
            except SourceError:
                stream.close()
                raise
            units = NumberedUnits(start.number, catalogue.key, self._reading.on_truncate, time.time_ns)
            every = self._reading.heartbeat
            beating = None if every is None else Heartbeats(MessageHeartbeat(slot.url), every)
            self._opened = _Source(stream, catalogue, units, beating)
            self._given = start
            self._sent_lsn = start.lsn
            self._advance_at = time.monotonic() + ADVANCE_EVERY_S
        return self._opened

    def _catalogue(self, start: Offset) -> SourceCatalogue:
        """Connects to the catalogue; looks whether the slot still is where it may be, as nobody else moves it now.

        While this process waited for the slot, another extraction, with an offset file of its own, may have read on.
        """
        slot = self._reading.slot
        catalogue = SourceCatalogue(slot.url, slot.publication, self._reading.tables)
        try:
            replication.check_not_beyond(slot.slot, catalogue.confirmed(slot.slot), start.lsn)
        except SourceError:
            catalogue.close()
            raise
        return catalogue

    def _give(self, source: _Source, lsn: int) -> bytes:
        """Returns the message that gives the offset behind an answer."""
        self._given = Offset(lsn, source.units.number, source.stream.identity)
        self._advance_at = time.monotonic() + ADVANCE_EVERY_S
        return orjson.dumps({"offset": self._given.as_json(), "ahead": True, "lag": self._lag(source)})

    def _lag(self, source: _Source) -> dict[str, int]:
        """Returns how far the source is ahead; asks it for the slot's WAL now and then."""
        if time.monotonic() >= self._wal_at:
            self._wal = source.catalogue.slot_wal(self._reading.slot.slot)
            self._wal_at = time.monotonic() + ADVANCE_EVERY_S
        newest = None if self._newest_us is None else self._newest_us * 1000
        found = {"time": newest, "heldBytes": self._wal.held, "leftBytes": self._wal.left}
        return {name: value for name, value in found.items() if value is not None}

    def _transactions(self, source: _Source, given: list[GivenUnit]) -> Iterator[bytes]:
        """Yields the records of whole transactions, up to about one PutRecords call; adds these to ``given``."""
        records, until = 0, time.monotonic() + _IDLE
        while records < _RECORDS or source.units.begun:
            frame = source.stream.receive(_IDLE if source.units.begun else until - time.monotonic())
            if frame is None and not source.units.begun:
                return
            # Where the server is silent within a transaction, an empty message says that this process lives.
            for record in (b"",) if frame is None else self._records(source, frame, given):
                until = until if records else time.monotonic() + _LINGER
                records += 1
                yield record

    def _records(self, source: _Source, frame: Frame, given: list[GivenUnit]) -> Iterator[bytes]:
        """Yields the records that a frame brings."""
        if not isinstance(frame, Data):
            # What is in the middle of being sent has committed behind this place, and counts only when it is whole.
            if self._assembler.transaction is None:
                self._sent_lsn = max(self._sent_lsn, frame.end_lsn)
            return
        inside = self._assembler.transaction
        if inside is not None and inside.commit_lsn in self._reading.passed_over and is_change(frame.payload):
            yield from source.units.pass_change()
            return
        with _naming(inside):
            message = decode(frame.payload)
            described_again = isinstance(message, Relation) and message.oid in self._assembler.relations
            changes = self._assembler.feed(message)
            for change in changes:
                yield from source.units.change(change)
        match message:
            case Relation(oid) if described_again:
                # The server describes a table once a connection, and again when something about it has changed.
                source.catalogue.forget_key(oid)
                source.catalogue.look(soon=True)
            case BeginMessage():
                self._begin(source)
            case LogicalMessage(transactional=True, prefix=heartbeat.PREFIX):
                source.units.heartbeat()
            case CommitMessage():
                self._sent_lsn = max(self._sent_lsn, message.end_lsn)
                if (unit := source.units.commit(message.end_lsn)) is not None:
                    given.append(unit)
                    yield unit.end

    def _begin(self, source: _Source) -> None:
        transaction = self._assembler.transaction
        assert transaction is not None
        if transaction.commit_lsn < self._given.lsn:
            raise SourceError(f"the source has sent {transaction.uow} again, which is before {self._given.as_json()}")
        source.units.begin(transaction, passed_over=transaction.commit_lsn in self._reading.passed_over)

    def _note(self, given: Sequence[GivenUnit]) -> None:
        if self._reading.journal is None:
            return
        commits = [(unit.transaction.uow, unit.transaction.commit_us, unit.changes) for unit in given]
        with self._reading.journal.open("ab") as file:
            # The newline before the line ends what a killed process may have left unfinished in the same file.
            file.write(b"\n" + orjson.dumps({"commits": commits}) + b"\n")


@contextmanager
def _naming(transaction: SourceTransaction | None) -> Iterator[None]:
    """Makes what is wrong with a transaction name it, and what helps."""
    try:
        yield
    except SourceError as error:
        if transaction is None:
            raise
        raise SourceError(
            f"transaction {transaction.uow} cannot be extracted: {error}; the option --skip-transaction"
            f" {format_lsn(transaction.commit_lsn)} passes exactly this transaction over: its unit fails under its"
            " number, and the extraction goes on"
        ) from error
