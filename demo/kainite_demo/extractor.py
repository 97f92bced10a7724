"""The extractor: a PostgreSQL slot's committed transactions, numbered, onto a Kinesis stream.

One step is: collect transactions; put their records; write the state file; acknowledge the LSN.

* killed before or during the put: nothing is remembered; the transactions come again with the
  same numbers, and units of work recognise their changes by their ordinals;
* killed between put and state file: the same, all of their records are there twice, and said so twice;
* killed between state file and acknowledgement: the server is asked to go on after the state
  file's LSN, and skips them.

So every committed transaction is on the stream at least once, and always under one number. A
transaction is held in memory as a whole; transactions without changes get no number.

Run it as ``python -m kainite_demo.extractor --help``. It prints a JSON line for each step. After
SIGTERM or SIGINT it finishes its step and ends.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import orjson

from kainite import aws
from kainite.errors import KainiteError
from kainite.settings import AwsSettings
from kainite_demo import extractor_state
from kainite_demo.extractor_state import Progress
from kainite_demo.framing import Data, format_lsn
from kainite_demo.pgoutput import decode
from kainite_demo.records import records_of
from kainite_demo.replication import ReplicationStream, SourceSlot
from kainite_demo.stream_writer import MAX_RECORDS, put_all
from kainite_demo.transactions import Assembler, Transaction

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient

_IDLE = 0.2
# Waiting a little for more makes fuller PutRecords calls; it is part of the end-to-end latency.
_LINGER = 0.03


@dataclass(frozen=True, slots=True)
class Extraction:
    """What to read and where to put it; ``state`` is the state file, ``spread`` the shards."""

    source: SourceSlot
    stream: str
    state: Path
    spread: int


class Extractor:
    """One run of the extractor; ``stop`` ends it after the step it is in."""

    def __init__(self, extraction: Extraction, kinesis: KinesisClient, stop: threading.Event) -> None:
        self._extraction = extraction
        self._kinesis = kinesis
        self._stop = stop
        self._progress = extractor_state.load(extraction.state, extraction.source.slot)
        self._assembler = Assembler()

    def run(self) -> None:
        """Carry transactions until ``stop``.

        Raises:
            SourceError: the source or the stream broke; what was not acknowledged comes again.
        """
        with ReplicationStream.open(self._extraction.source, self._progress.lsn) as stream:
            _print("started", number=self._progress.number, lsn=format_lsn(self._progress.lsn))
            stopping = False
            while not stopping:
                stopping = self._stop.is_set()
                transactions = list(self._collect(stream))
                if transactions:
                    self._carry(stream, transactions)
        _print("stopped", number=self._progress.number, lsn=format_lsn(self._progress.lsn))

    def _collect(self, stream: ReplicationStream) -> Iterator[Transaction]:
        """Transactions that are there, up to about one PutRecords call of them."""
        size, until = 0, time.monotonic() + _IDLE
        while size < MAX_RECORDS and (frame := stream.receive(until - time.monotonic())) is not None:
            transaction = self._assembler.feed(decode(frame.payload)) if isinstance(frame, Data) else None
            if transaction is not None and transaction.changes and transaction.end_lsn > self._progress.lsn:
                until = until if size else time.monotonic() + _LINGER
                size += len(transaction.changes) + 1
                yield transaction

    def _carry(self, stream: ReplicationStream, transactions: list[Transaction]) -> None:
        first = self._progress.number + 1
        numbered = list(enumerate(transactions, first))
        records = (r for number, t in numbered for r in records_of(t, number, self._extraction.spread))
        put = put_all(self._kinesis, self._extraction.stream, records)
        self._progress = Progress(self._progress.slot, transactions[-1].end_lsn, numbered[-1][0])
        # Said before it is remembered: what is said twice after a kill is recognised, what is never said is missing.
        _print(
            "captured", first=first, records=put, commits=[(t.uow, t.commit_us, len(t.changes)) for t in transactions]
        )
        extractor_state.save(self._extraction.state, self._progress)
        stream.acknowledge(self._progress.lsn)


def _print(event: str, **fields: Any) -> None:
    # The newline before it ends what an earlier run may have left unfinished in the same file.
    line = orjson.dumps({"event": event, "time": time.time(), **fields})
    sys.stdout.buffer.write(b"\n" + line + b"\n")
    sys.stdout.buffer.flush()


@click.command()
@click.option("--source", required=True, help="Connection URL of the source database.")
@click.option("--slot", required=True, help="Replication slot, with plugin pgoutput.")
@click.option("--publication", required=True)
@click.option("--stream", required=True, help="Kinesis stream to put to.")
@click.option("--state", required=True, type=click.Path(path_type=Path), help="State file; made with the slot.")
@click.option("--shards", "spread", default=1, show_default=True, help="Spread a unit over this many shards.")
@click.option("--kinesis-endpoint", default=None)
@click.option("--region", default=None)
def main(
    source: str,
    slot: str,
    publication: str,
    stream: str,
    state: Path,
    spread: int,
    kinesis_endpoint: str | None,
    region: str | None,
) -> None:
    """Carry committed transactions from PostgreSQL to a Kinesis stream."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    settings = AwsSettings(region=region, kinesis_endpoint=kinesis_endpoint, dynamodb_endpoint=None)
    try:
        kinesis = aws.client("kinesis", settings)
        Extractor(Extraction(SourceSlot(source, slot, publication), stream, state, spread), kinesis, stop).run()
    except KainiteError as error:
        sys.exit(f"extractor: {error}")


if __name__ == "__main__":
    main()
