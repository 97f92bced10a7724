"""A PostgreSQL database whose changes reach Kinesis as Aurora DSQL's do; a process of the demo.

The database's transactions come by logical decoding. Each transaction becomes DSQL's records: its net effect, a record
a row, with random partition keys, out of order, some records twice, some in pieces. In the middle of the run shards are
split and merged.

This process is the database as far as commits go: it gives each transaction its commit time when it reads it. The times
ascend in the order of commits. So :class:`~kainite_demo.dsql_delivery.Habits` alone decide how late a record
comes, and the load of the machine does not. DSQL is a service that nobody kills; neither is this process, and it keeps
nothing.
"""

from __future__ import annotations

import logging
import math
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import orjson
import psycopg

from kainite.base.errors import DemoError
from kainite.base.logs import configure, event
from kainite.capture.postgresql.pgoutput import decode
from kainite.capture.postgresql.replication import ReplicationStream, SourceSlot
from kainite.capture.postgresql.replication_frames import Data, parse_lsn
from kainite.capture.postgresql.transactions import Assembler, SourceChange, SourceTransaction
from kainite_demo import services
from kainite_demo.dsql_changes import net_changes
from kainite_demo.dsql_delivery import Habits, UntidyDelivery
from kainite_demo.dsql_records import Committed, Recorder, name_of
from kainite_demo.resharding import Resharding

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient
    from types_boto3_kinesis.type_defs import PutRecordsRequestEntryTypeDef

_TICK_S: Final = 0.05
_RECORDS_A_CALL: Final = 500
# Rows of the demo are short; DSQL splits only those of more than 9 MiB.
_SPLIT: Final = 0.002

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Clock:
    """Gives commit times: nanoseconds since the epoch, each later than the one before."""

    latest: int = 0

    def next(self) -> int:
        self.latest = max(self.latest + 1, time.time_ns())
        return self.latest


class DsqlSource:
    """Brings the transactions of a slot to a stream.

    Args:
        replication: the slot's stream.
        kinesis, stream: where records are put.
        journal: a file that gets each transaction's name and commit time.
        seed: the seed of everything that is random.
        delivery: how records reach the stream; None means as untidily as the demo needs it.
    """

    def __init__(
        self,
        replication: ReplicationStream,
        kinesis: KinesisClient,
        stream: str,
        journal: Path,
        seed: int,
        delivery: UntidyDelivery | None = None,
    ) -> None:
        choice = random.Random(seed)
        self._replication = replication
        self._kinesis = kinesis
        self._stream = stream
        self._journal = journal
        self._assembler = Assembler()
        self._changes: list[SourceChange] = []  # of the transaction that is being read
        self._clock = Clock()
        self._recorder = Recorder(choice, split=_SPLIT)
        self._delivery = UntidyDelivery(Habits(), choice) if delivery is None else delivery

    def step(self) -> None:
        """Reads what has committed, and puts what is due."""
        for transaction, sent in self._committed():
            self._take(transaction, sent)
        batch: list[PutRecordsRequestEntryTypeDef] = []
        for key, data in self._delivery.due(time.monotonic()):
            batch.append({"PartitionKey": key, "Data": data})
            if len(batch) == _RECORDS_A_CALL:
                self._put(batch)
                batch = []
        if batch:
            self._put(batch)

    def _committed(self) -> Iterator[tuple[SourceTransaction, list[SourceChange]]]:
        """Yields whole transactions, with their changes."""
        until = time.monotonic() + _TICK_S
        while (frame := self._replication.receive(max(0.0, until - time.monotonic()))) is not None:
            if isinstance(frame, Data):
                inside = self._assembler.transaction
                self._changes += self._assembler.feed(decode(frame.payload))
                if inside is not None and self._assembler.transaction is None and self._changes:
                    yield inside, self._changes
                    self._changes = []
            if time.monotonic() > until:
                return

    def _take(self, transaction: SourceTransaction, sent: list[SourceChange]) -> None:
        changes = tuple(net_changes(sent))
        committed = Committed(name_of(transaction.uow), self._clock.next(), changes)
        for record in self._recorder.records_of(committed, time.time_ns()):
            self._delivery.give(record, time.monotonic())
        if changes:
            line = orjson.dumps({"commits": [(committed.tx, transaction.commit_us, len(changes))]})
            with self._journal.open("ab") as file:
                file.write(line + b"\n")

    def _put(self, batch: list[PutRecordsRequestEntryTypeDef]) -> None:
        """Puts records; puts refused records again."""
        while batch:
            answer = self._kinesis.put_records(StreamName=self._stream, Records=batch)
            batch = [one for one, told in zip(batch, answer["Records"], strict=True) if told.get("ErrorCode")]


def _begin(source: str, slot: str) -> int:
    """Returns the place from which a slot sends transactions."""
    with psycopg.connect(source) as connection:
        query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s"
        found = connection.execute(query, [slot]).fetchone()
    if found is None:
        raise DemoError(f"the source has no slot {slot}")
    return parse_lsn(found[0])


@click.command()
@click.option("--source", required=True)
@click.option("--slot", required=True)
@click.option("--publication", required=True)
@click.option("--endpoint", required=True)
@click.option("--stream", required=True)
@click.option(
    "--journal", default=os.devnull, type=click.Path(path_type=Path), help="Gets each commit's name and time."
)
@click.option("--seed", default=1, help="Of everything that is random.")
@click.option("--reshard-after", default=math.inf, help="Seconds until the stream is resharded; never by default.")
def main(
    source: str,
    slot: str,
    publication: str,
    endpoint: str,
    stream: str,
    journal: Path,
    seed: int,
    reshard_after: float,
) -> None:
    """Streams a database's changes as Aurora DSQL does, until it is ended."""
    configure(json_lines=True)
    kinesis = services.kinesis_client(endpoint)
    resharding = Resharding(kinesis, stream, time.monotonic() + reshard_after)
    with ReplicationStream.open(SourceSlot(source, slot, publication), _begin(source, slot)) as replication:
        dsql = DsqlSource(replication, kinesis, stream, journal, seed)
        event(_logger, logging.INFO, "extraction started", slot=slot)
        while True:
            dsql.step()
            resharding.look(time.monotonic())


if __name__ == "__main__":
    main()
