"""Answers ``kainite extract``'s requests with the numbered transactions of a PostgreSQL slot.

A cyclic extractor with ``extractorOffsets=kainite``. A request is one JSON object; the answer is the records of the
transactions that have committed since, and the new offset::

    {"start":{"lsn":"0/1718490","number":16},"end":null}
    {"uow":"pg-754-0/17184C0","number":17,…}
    {"offset":{"lsn":"0/17184F0","number":17},"ahead":true}

It may be asked for more before its answer is on the stream. What a request names as ``stored``, or as its start where
it names nothing, is durable: everything before it is on the stream. The extractor acknowledges exactly that much to
PostgreSQL, never more. After a crash of either side PostgreSQL sends the transactions behind it again, and they get
the same numbers. The extractor stores nothing: the first request of a process says where to begin.

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
from kainite.capture.postgresql.pgoutput import decode
from kainite.capture.postgresql.records import records_of
from kainite.capture.postgresql.replication import ReplicationStream, SourceSlot
from kainite.capture.postgresql.replication_frames import Data, format_lsn, parse_lsn
from kainite.capture.postgresql.transactions import Assembler, SourceTransaction

# Seconds that an answer without any transaction may take.
_IDLE = 0.2
# Waiting a little for more makes fuller PutRecords calls; the wait is part of the end-to-end latency.
_LINGER = 0.03
_RECORDS = 500  # the bytes of a PutRecords call
_EXAMPLE = '{"lsn":"0/1718490","number":0}'


@dataclass(frozen=True, slots=True)
class Offset:
    """A place in the source: everything that committed before ``lsn`` was given, the last of it as ``number``."""

    lsn: int
    number: int

    @classmethod
    def from_json(cls, value: Any) -> Offset:
        """Reads an offset as Kainite stores it.

        Raises:
            SourceError: ``value`` is no offset.
        """
        try:
            return cls(parse_lsn(value["lsn"]), int(value["number"]))
        except (KeyError, TypeError, ValueError):
            text = orjson.dumps(value).decode()
            raise SourceError(f"{text} is no offset of this extractor: begin with {_EXAMPLE}") from None

    def as_json(self) -> dict[str, Any]:
        return {"lsn": format_lsn(self.lsn), "number": self.number}


class PostgresExtractor:
    """Answers the requests of one process, one after the other.

    Args:
        source: the slot and publication to read.
        journal: a file to which commits are appended; None for no journal.
    """

    def __init__(self, source: SourceSlot, journal: Path | None = None) -> None:
        self._source = source
        self._journal = journal
        self._assembler = Assembler()
        self._stream: ReplicationStream | None = None
        self._given = Offset(0, 0)

    def answer(self, request: bytes) -> Iterator[bytes]:
        """Yields the messages of one cycle.

        Raises:
            SourceError: the request cannot be answered, or the source broke.
            OSError: the journal cannot be written.
        """
        start, stored = _places_in(request)
        if self._stream is None:
            self._stream = ReplicationStream.open(self._source, start.lsn)
            self._given = start
        if start != self._given:
            raise SourceError(f"asked from {start.as_json()}, after {self._given.as_json()} was given")
        self._stream.acknowledge(stored.lsn)
        transactions = list(self._collect(self._stream))
        for number, transaction in enumerate(transactions, start.number + 1):
            yield from records_of(transaction, number)
        if transactions:
            self._note(transactions)
            self._given = Offset(transactions[-1].end_lsn, start.number + len(transactions))
            yield orjson.dumps({"offset": self._given.as_json(), "ahead": True})

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def _collect(self, stream: ReplicationStream) -> Iterator[SourceTransaction]:
        """Yields the transactions that have committed, up to about one PutRecords call of them."""
        size, until = 0, time.monotonic() + _IDLE
        while size < _RECORDS and (frame := stream.receive(until - time.monotonic())) is not None:
            transaction = self._assembler.feed(decode(frame.payload)) if isinstance(frame, Data) else None
            if transaction is not None and transaction.changes and transaction.end_lsn > self._given.lsn:
                until = until if size else time.monotonic() + _LINGER
                size += len(transaction.changes) + 1
                yield transaction

    def _note(self, transactions: Sequence[SourceTransaction]) -> None:
        if self._journal is None:
            return
        line = orjson.dumps({"commits": [(t.uow, t.commit_us, len(t.changes)) for t in transactions]})
        with self._journal.open("ab") as file:
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
