"""The extractor: a PostgreSQL slot's committed transactions, numbered, for ``kainite extract``.

A cyclic extractor with ``extractorOffsets=kainite``. It reads a request from standard input, and answers on standard
output with the records of the transactions that are there, the new offset, and EOP::

    {"start":{"lsn":"0/1718490","number":16},"end":null}
    {"uow":"pg-754-0/17184C0","number":17,…}
    {"offset":{"lsn":"0/17184F0","number":17}}

The start of a request is what Kainite has made durable: everything before it is on the stream. So that much is
acknowledged to PostgreSQL, never more, and after a crash of either side the transactions behind it come again, with
the same numbers. Nothing is kept here: the first request of a process says where to begin.

A transaction is held in memory as a whole; transactions without changes get no number. When each one committed goes
to a journal, before its answer ends: what is said twice after a kill is recognised, what is never said is missing.

Run it as ``python -m kainite.capture.postgresql.extractor --help``. It ends when its input does.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import click
import orjson

from kainite.base.errors import KainiteError, SourceError
from kainite.base.marker_spelling import unescape
from kainite.base.markers import Markers
from kainite.capture.postgresql.pgoutput import decode
from kainite.capture.postgresql.records import records_of
from kainite.capture.postgresql.replication import ReplicationStream, SourceSlot
from kainite.capture.postgresql.replication_frames import Data, format_lsn, parse_lsn
from kainite.capture.postgresql.transactions import Assembler, Transaction
from kainite.child.markers.framing import Scanner

_IDLE = 0.2
# Waiting a little for more makes fuller PutRecords calls; it is part of the end-to-end latency.
_LINGER = 0.03
_RECORDS = 500  # of a PutRecords call
_READ_SIZE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Offset:
    """Everything that committed before ``lsn`` has been given; ``number`` was the last of it."""

    lsn: int
    number: int

    @classmethod
    def from_json(cls, value: Any) -> Offset:
        """As Kainite keeps it.

        Raises:
            SourceError: it is none.
        """
        try:
            return cls(parse_lsn(value["lsn"]), int(value["number"]))
        except (KeyError, TypeError, ValueError):
            raise SourceError(f"{value!r} is no offset of this extractor") from None

    def as_json(self) -> dict[str, Any]:
        return {"lsn": format_lsn(self.lsn), "number": self.number}


class Extractor:
    """One process's work: answers requests, one after the other.

    Args:
        source: what to read.
        journal: where commits are noted.
    """

    def __init__(self, source: SourceSlot, journal: Path) -> None:
        self._source = source
        self._journal = journal
        self._assembler = Assembler()
        self._stream: ReplicationStream | None = None
        self._given = Offset(0, 0)

    def answer(self, request: bytes) -> Iterator[bytes]:
        """The messages of one cycle.

        Raises:
            SourceError: the request cannot be answered, or the source broke.
        """
        start = _start_of(request)
        if self._stream is None:
            self._stream = ReplicationStream.open(self._source, start.lsn)
            self._given = start
        if start != self._given:
            raise SourceError(f"asked from {start.as_json()}, after {self._given.as_json()} was given")
        self._stream.acknowledge(start.lsn)
        transactions = list(self._collect(self._stream))
        for number, transaction in enumerate(transactions, start.number + 1):
            yield from records_of(transaction, number)
        if transactions:
            self._note(transactions)
            self._given = Offset(transactions[-1].end_lsn, start.number + len(transactions))
            yield orjson.dumps({"offset": self._given.as_json()})

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def _collect(self, stream: ReplicationStream) -> Iterator[Transaction]:
        """Transactions that are there, up to about one PutRecords call of them."""
        size, until = 0, time.monotonic() + _IDLE
        while size < _RECORDS and (frame := stream.receive(until - time.monotonic())) is not None:
            transaction = self._assembler.feed(decode(frame.payload)) if isinstance(frame, Data) else None
            if transaction is not None and transaction.changes and transaction.end_lsn > self._given.lsn:
                until = until if size else time.monotonic() + _LINGER
                size += len(transaction.changes) + 1
                yield transaction

    def _note(self, transactions: Sequence[Transaction]) -> None:
        line = orjson.dumps({"commits": [(t.uow, t.commit_us, len(t.changes)) for t in transactions]})
        with self._journal.open("ab") as file:
            # The newline before it ends what a killed process may have left unfinished in the same file.
            file.write(b"\n" + line + b"\n")


def markers_of(environment: Mapping[str, str]) -> Markers:
    """The markers that Kainite says in a child's environment."""
    names = ("KAINITE_EOM", "KAINITE_EOP", "KAINITE_EOB", "KAINITE_BNC")
    return Markers(*(unescape(environment[name]) for name in names)) if names[0] in environment else Markers()


def _start_of(request: bytes) -> Offset:
    try:
        return Offset.from_json(orjson.loads(request)["start"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise SourceError(f"{request!r} is no request: set extractorOffsets=kainite") from None


def _serve(extractor: Extractor, markers: Markers, requests: int, answers: BinaryIO) -> None:
    scanner = Scanner(markers)
    while data := os.read(requests, _READ_SIZE):
        for request in scanner.feed(data):
            for message in extractor.answer(request.payload):
                answers.write(markers.message(message))
            answers.write(markers.eop)
            answers.flush()


@click.command()
@click.option("--source", required=True, help="Connection URL of the source database.")
@click.option("--slot", required=True, help="Replication slot, with plugin pgoutput.")
@click.option("--publication", required=True)
@click.option("--journal", required=True, type=click.Path(path_type=Path), help="Where commits are noted; appended to.")
def main(source: str, slot: str, publication: str, journal: Path) -> None:
    """Give committed transactions of PostgreSQL to `kainite extract`, cycle by cycle."""
    try:
        extractor = Extractor(SourceSlot(source, slot, publication), journal)
        _serve(extractor, markers_of(os.environ), sys.stdin.fileno(), sys.stdout.buffer)
        extractor.close()
    except KainiteError as error:
        sys.exit(f"extractor: {error}")


if __name__ == "__main__":
    main()
