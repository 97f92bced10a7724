"""Answers ``kainite extract``'s requests with the numbered transactions of a PostgreSQL slot.

A cyclic extractor with ``extractorOffsets=kainite``. A request is one JSON object; the answer is the records of the
transactions that have committed since, and the new offset::

    {"start":{"lsn":"0/1718490","number":16},"end":null}
    {"uow":"pg-754-0/17184C0","number":17,…}
    {"offset":{"lsn":"0/17184F0","number":17,"source":{"system":"7390…","timeline":1,"database":"shop"}},"ahead":true}

It may be asked for more before its answer is on the stream. What a request names as ``stored``, or as its start where
it names nothing, is durable: everything before it is on the stream. The extractor acknowledges exactly that much to
PostgreSQL, never more. After a crash of either side PostgreSQL sends the transactions behind it again, and they get
the same numbers. The extractor stores nothing: the first request of a process says where to begin.

An offset says which source it was read from, and the extractor refuses another source
(:mod:`~kainite.capture.postgresql.source_identity`). While nothing of the publication commits, the offset moves all the
same, each :data:`ADVANCE_EVERY_S` seconds, by what the server says that it has sent: a slot that is not advanced holds
back the WAL of the whole cluster.

A transaction is held in memory as a whole. Transactions without changes get no number. With a journal, the extractor
notes when each transaction committed, before the answer ends. After a kill a transaction may stand in the journal
twice; none is missing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import Relation, TruncateMessage, decode
from kainite.capture.postgresql.records import records_of
from kainite.capture.postgresql.replication import ReplicationStream, SourceSlot
from kainite.capture.postgresql.replication_frames import Data, Frame, format_lsn, parse_lsn
from kainite.capture.postgresql.source_catalogue import SourceCatalogue
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.capture.postgresql.transactions import Assembler, SourceTransaction

# Seconds that an answer without any transaction may take.
_IDLE = 0.2
# Waiting a little for more makes fuller PutRecords calls; the wait is part of the end-to-end latency.
_LINGER = 0.03
_RECORDS = 500  # the most records of a PutRecords call
ADVANCE_EVERY_S = 10.0
"""Seconds between two offsets without a transaction: each one is a write of the offset's place."""

_EXAMPLE = '{"lsn":"0/1718490","number":0}'


@dataclass(frozen=True, slots=True)
class Offset:
    """A place in the source: everything that committed before ``lsn`` was given, the last of it as ``number``.

    Attributes:
        source: the source that ``lsn`` was read from; None in the offset that a person begins with.
    """

    lsn: int
    number: int
    source: SourceIdentity | None = None

    @classmethod
    def from_json(cls, value: Any) -> Offset:
        """Reads an offset as Kainite stores it.

        Raises:
            SourceError: ``value`` is no offset.
        """
        try:
            source = value.get("source")
            noted = None if source is None else SourceIdentity.from_json(source)
            return cls(parse_lsn(value["lsn"]), int(value["number"]), noted)
        except (AttributeError, KeyError, TypeError, ValueError):
            text = orjson.dumps(value).decode()
            raise SourceError(f"{text} is no offset of this extractor: begin with {_EXAMPLE}") from None

    def as_json(self) -> dict[str, Any]:
        place: dict[str, Any] = {"lsn": format_lsn(self.lsn), "number": self.number}
        return place if self.source is None else place | {"source": self.source.as_json()}


@dataclass(frozen=True, slots=True)
class Reading:
    """How a source is read.

    Attributes:
        slot: the slot and publication to read.
        tables: tables, as ``schema.table``, that the publication must have; empty: whatever it has.
        skip_truncate: whether TRUNCATE is passed over; else it fails its unit.
        journal: a file to which commits are appended; None for no journal.
    """

    slot: SourceSlot
    tables: tuple[str, ...] = ()
    skip_truncate: bool = False
    journal: Path | None = None


class PostgresExtractor:
    """Answers the requests of one process, one after the other."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._assembler = Assembler()
        self._stream: ReplicationStream | None = None
        self._catalogue: SourceCatalogue | None = None
        self._given = Offset(0, 0)
        self._sent_lsn = 0  # nothing that committed before it is still to come
        self._advance_at = 0.0

    def answer(self, request: bytes) -> Iterator[bytes]:
        """Yields the messages of one cycle.

        Raises:
            SourceError: the request cannot be answered, or the source broke.
            OSError: the journal cannot be written.
        """
        start, stored = _places_in(request)
        stream, catalogue = self._opened(start)
        if start != self._given:
            raise SourceError(f"asked from {start.as_json()}, after {self._given.as_json()} was given")
        stream.acknowledge(stored.lsn)
        catalogue.look()
        transactions = list(self._collect(stream, catalogue))
        for number, transaction in enumerate(transactions, start.number + 1):
            yield from records_of(transaction, number, catalogue.primary_key)
        if transactions:
            self._note(transactions)
            yield self._give(transactions[-1].end_lsn, start.number + len(transactions))
        elif self._sent_lsn > self._given.lsn and time.monotonic() >= self._advance_at:
            yield self._give(self._sent_lsn, start.number)

    def close(self) -> None:
        for opened in (self._stream, self._catalogue):
            if opened is not None:
                opened.close()

    def _opened(self, start: Offset) -> tuple[ReplicationStream, SourceCatalogue]:
        """Returns the connections to the source; opens them for the first request."""
        if self._stream is None or self._catalogue is None:
            slot = self._reading.slot
            stream = ReplicationStream.open(slot, start.lsn, start.source)
            try:
                self._catalogue = SourceCatalogue(slot.url, slot.publication, self._reading.tables)
            except SourceError:
                stream.close()
                raise
            self._stream = stream
            self._given = start
            self._advance_at = time.monotonic() + ADVANCE_EVERY_S
        return self._stream, self._catalogue

    def _give(self, lsn: int, number: int) -> bytes:
        """Returns the message that gives the offset behind an answer."""
        assert self._stream is not None
        self._given = Offset(lsn, number, self._stream.identity)
        self._advance_at = time.monotonic() + ADVANCE_EVERY_S
        return orjson.dumps({"offset": self._given.as_json(), "ahead": True})

    def _collect(self, stream: ReplicationStream, catalogue: SourceCatalogue) -> Iterator[SourceTransaction]:
        """Yields the transactions that have committed, up to about one PutRecords call of them."""
        size, until = 0, time.monotonic() + _IDLE
        while size < _RECORDS and (frame := stream.receive(until - time.monotonic())) is not None:
            transaction = self._assembled(frame, catalogue)
            if transaction is not None and transaction.changes and transaction.end_lsn > self._given.lsn:
                until = until if size else time.monotonic() + _LINGER
                size += len(transaction.changes) + 1
                yield transaction

    def _assembled(self, frame: Frame, catalogue: SourceCatalogue) -> SourceTransaction | None:
        """Takes a frame; returns the transaction that it completes."""
        if not isinstance(frame, Data):
            # What is in the middle of being sent has committed behind this place, and counts only when it is whole.
            if self._assembler.begin is None:
                self._sent_lsn = max(self._sent_lsn, frame.end_lsn)
            return None
        message = decode(frame.payload)
        if isinstance(message, Relation) and message.oid in self._assembler.relations:
            # The server describes a table once a connection, and again when something about the table has changed.
            catalogue.forget_key(message.oid)
            catalogue.look(soon=True)
        if isinstance(message, TruncateMessage) and self._reading.skip_truncate:
            return None
        transaction = self._assembler.feed(message)
        if transaction is not None:
            self._sent_lsn = max(self._sent_lsn, transaction.end_lsn)
        return transaction

    def _note(self, transactions: Sequence[SourceTransaction]) -> None:
        if self._reading.journal is None:
            return
        line = orjson.dumps({"commits": [(t.uow, t.commit_us, len(t.changes)) for t in transactions]})
        with self._reading.journal.open("ab") as file:
            # The newline before the line ends what a killed process may have left unfinished in the same file.
            file.write(b"\n" + line + b"\n")


def _places_in(request: bytes) -> tuple[Offset, Offset]:
    """Returns the offset at which a request begins, and the offset up to which everything is on the stream."""
    try:
        asked = orjson.loads(request)
        return Offset.from_json(asked["start"]), Offset.from_json(asked.get("stored", asked["start"]))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise SourceError(
            f"{request.decode(errors='replace')!r} is no request with an offset: set extractorOffsets=kainite"
        ) from None
