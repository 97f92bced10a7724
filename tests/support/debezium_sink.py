"""Puts Debezium's events on Kinesis as Debezium Server does, in each of the ways that its releases have had.

Follows ``KinesisChangeConsumer`` of debezium-server: the event's key is the partition key, ``default`` where there is
none; a tombstone has no data. What differs between the releases is :class:`Sending`. The one difference from Java: a
request that is refused is tried again after 10 ms, not after a second.
"""

from __future__ import annotations

import enum
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from botocore.exceptions import ClientError

NULL_KEY: Final = "default"
BATCH_SIZE: Final = 500
"""Records in a request: the sink's own default, and the most that Kinesis takes."""
RETRY_INTERVAL_S: Final = 0.01

Entry = dict[str, Any]


class Sending(enum.Enum):
    """How a release sends the events of a batch."""

    SINGLY = "singly"
    """Up to 3.0.0: each in a request of its own, again until it is taken. Keeps the order."""
    LOSING = "losing"
    """3.0.1 to 3.0.8, and 3.1.0 (DBZ-8193): in requests of 500. What is refused a second time is lost, because the
    third request takes its records from the first one by the second one's indices."""
    BATCHES = "batches"
    """From 3.1.1 (DBZ-8893): what is refused goes again, behind what was taken."""


class Event(Protocol):
    """What of a ``ChangeEvent`` the sink reads."""

    def key(self) -> object: ...
    def value(self) -> object: ...
    def destination(self) -> object: ...


@dataclass
class RefusingKinesis:
    """A client of Kinesis whose stream refuses some records of each request, as one without capacity does.

    Attributes:
        client: the real one.
        share: how many of the records are refused, from 0 to 1.
        chance: which of them.
        taken: the records that the stream took, as often as it took them.
    """

    client: Any
    share: float
    chance: random.Random
    taken: list[Entry] = field(default_factory=list)

    def put_record(self, **record: Any) -> None:
        if self._refuses():
            raise ClientError({"Error": {"Code": "ProvisionedThroughputExceededException"}}, "PutRecord")
        self.client.put_record(**record)
        self.taken.append({name: record[name] for name in ("PartitionKey", "Data")})

    def put_records(self, StreamName: str, Records: Sequence[Entry]) -> Sequence[bool]:  # noqa: N803  # boto3's names
        """Returns, record by record, whether it was refused."""
        refused = [self._refuses() for _ in Records]
        taken = [record for record, is_refused in zip(Records, refused, strict=True) if not is_refused]
        if taken:
            response = self.client.put_records(StreamName=StreamName, Records=taken)
            assert response["FailedRecordCount"] == 0
            self.taken += taken
        return refused

    def _refuses(self) -> bool:
        return self.chance.random() < self.share


@dataclass
class KinesisSink:
    """Takes a batch of the engine's events to the stream that they name.

    Attributes:
        kinesis: where the records go.
        sending: the release.
        batch_size: ``debezium.sink.kinesis.batch.size``.
        retries: ``debezium.sink.kinesis.default.retries``: how often a request is made.
    """

    kinesis: RefusingKinesis
    sending: Sending = Sending.BATCHES
    batch_size: int = BATCH_SIZE
    retries: int = 100

    def handle(self, events: Sequence[Event]) -> list[Entry]:
        """Puts the events; returns those that never got onto the stream.

        Raises:
            RuntimeError: a record was refused too often; the engine ends then.
        """
        self.kinesis.taken.clear()
        entries = [(str(event.destination()), _entry(event)) for event in events]
        streams: dict[str, list[Entry]] = {}
        for stream, entry in entries:
            streams.setdefault(stream, []).append(entry)
        for stream, its_entries in streams.items():
            self._put(stream, its_entries)
        return [entry for _, entry in entries if entry not in self.kinesis.taken]

    def _put(self, stream: str, entries: list[Entry]) -> None:
        if self.sending is Sending.SINGLY:
            for entry in entries:
                self._put_one(stream, entry)
            return
        for start in range(0, len(entries), self.batch_size):
            self._put_batch(stream, entries[start : start + self.batch_size])

    def _put_one(self, stream: str, entry: Entry) -> None:
        for _ in self._attempts():
            try:
                return self.kinesis.put_record(StreamName=stream, **entry)
            except ClientError:
                pass
        raise RuntimeError("Exceeded maximum number of attempts to publish event")

    def _put_batch(self, stream: str, batch: list[Entry]) -> None:
        request = batch
        for _ in self._attempts():
            refused = self.kinesis.put_records(StreamName=stream, Records=request)
            if not any(refused):
                return
            source = batch if self.sending is Sending.LOSING else request
            request = [source[index] for index, is_refused in enumerate(refused) if is_refused]
        raise RuntimeError("Exceeded maximum number of attempts to publish event")

    def _attempts(self) -> Iterator[None]:
        yield
        for _ in range(self.retries - 1):
            time.sleep(RETRY_INTERVAL_S)
            yield


def _entry(event: Event) -> Entry:
    key, value = event.key(), event.value()
    data = b"" if value is None else str(value).encode()
    return {"PartitionKey": NULL_KEY if key is None else str(key), "Data": data}
