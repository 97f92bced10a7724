"""Puts records on a Kinesis stream: packed into PutRecords calls, refused records sent again.

:func:`pack` and :func:`lanes` are pure. :meth:`StreamWriter.put` returns when every record is on the stream. A crash
before it returns leaves some of them there, in any order; the caller must be able to put all of them again. After an
error only the records left in the list need be put again.

Records that do not fit into one call go in up to :data:`LANES` lanes, each with one call under way. All records of a
shard have one lane, so the calls for a shard are made one after the other; a throttled shard delays its lane alone.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.base.retry import Backoff
from kainite.base.words import counted
from kainite.kinesis.failures import stream_error

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient
    from types_boto3_kinesis.type_defs import PutRecordsInputTypeDef, PutRecordsRequestEntryTypeDef

# Kinesis Data Streams, Quotas and limits: records and bytes of a PutRecords call, bytes of a record.
MAX_RECORDS = 500
MAX_BYTES = 5 * 1024 * 1024
MAX_RECORD_BYTES = 1024 * 1024
MAX_PARTITION_KEY = 256  # characters
LANES = 4
_BACKOFF = Backoff.doubling(0.05, 2.0)


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """A record as PutRecords takes it; ``hash_key`` is the explicit hash key."""

    data: bytes
    partition_key: str
    hash_key: str

    @property
    def size(self) -> int:
        """Returns the bytes that count against the limits of Kinesis: data and partition key."""
        return len(self.data) + len(self.partition_key.encode())


def pack(records: Iterable[StreamRecord]) -> Iterator[list[StreamRecord]]:
    """Cuts records into batches that PutRecords takes, in order.

    Raises:
        StreamError: one record alone is too large.
    """
    batch: list[StreamRecord] = []
    size = 0
    for record in records:
        if record.size > MAX_RECORD_BYTES:
            raise StreamError(
                f"the record with key {record.partition_key!r} takes {record.size} bytes: Kinesis takes 1 MiB"
            )
        if batch and (len(batch) == MAX_RECORDS or size + record.size > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += record.size
    if batch:
        yield batch


def lanes(records: Sequence[StreamRecord], shard_of: Callable[[StreamRecord], int]) -> list[list[StreamRecord]]:
    """Returns the records by lanes, in order within a lane. A shard has one lane; the shards take the lanes in turn.

    Args:
        records: the records, in the order in which they are to be put.
        shard_of: numbers the shards.
    """
    found: dict[int, list[StreamRecord]] = {}
    for record in records:
        found.setdefault(shard_of(record) % LANES, []).append(record)
    return list(found.values())


class StreamWriter:
    """Puts records on one stream. Calls block; one thread at a time may make them.

    Args:
        kinesis: a boto3 client.
        name: the stream's name.
        arn: its ARN, for a stream of another account.
        limit: seconds that one PutRecords may take in all, with its repetitions.
    """

    def __init__(self, kinesis: KinesisClient, name: str, arn: str | None = None, limit: float = 30.0) -> None:
        self._kinesis = kinesis
        self._name = name
        self._arn = arn
        self._limit = limit
        self._given_up = threading.Event()

    def give_up(self) -> None:
        """Lets a put in another thread end soon, with an error."""
        self._given_up.set()

    def put(self, records: list[StreamRecord], shard_of: Callable[[StreamRecord], int] | None = None) -> None:
        """Puts records on the stream, with retries; removes from the list the records that are on the stream.

        Args:
            records: the records, in the order in which they are to be put.
            shard_of: numbers the shards, whose calls may then be made at the same time; None means one call at a time.

        Raises:
            StreamError: a record is too large, or the stream refuses them for good.
            StreamUnavailableError: the stream went on refusing until the limit, or it was given up.
        """
        batches = list(pack(records))  # all of them, so that a record that is too large is found before anything is put
        if shard_of is None or len(batches) <= 1:
            laid = [batches]
        else:
            laid = [list(pack(lane)) for lane in lanes(records, shard_of)]
        try:
            self._put_lanes(laid)
        finally:
            records[:] = chain.from_iterable(chain.from_iterable(laid))

    def _put_lanes(self, laid: list[list[list[StreamRecord]]]) -> None:
        """Puts each lane's batches in order; when one lane fails, the others end with the call that is under way."""
        failed = threading.Event()
        if len(laid) == 1:
            self._put_lane(laid[0], failed)
            return
        with ThreadPoolExecutor(len(laid), "put") as threads:
            ended = [threads.submit(self._put_lane, lane, failed) for lane in laid]
        errors = [error for error in (lane.exception() for lane in ended) if error is not None]
        for error in sorted(errors, key=lambda error: isinstance(error, StreamUnavailableError)):
            raise error  # an error that waiting does not mend comes first

    def _put_lane(self, batches: list[list[StreamRecord]], failed: threading.Event) -> None:
        try:
            for batch in batches:
                if self._given_up.is_set():
                    raise StreamUnavailableError(f"putting records on stream {self._name!r} was given up")
                if failed.is_set():
                    return
                self._put_batch(batch, time.monotonic() + self._limit)
        except BaseException:
            failed.set()
            raise

    def _put_batch(self, batch: list[StreamRecord], deadline: float) -> None:
        """Puts the records of ``batch``, and removes them from it."""
        for failures in itertools.count(1):
            batch[:], reason = self._try_put(batch)
            if not batch:
                return
            pause = _BACKOFF.after(failures)
            if time.monotonic() + pause > deadline or self._given_up.wait(pause):
                raise StreamUnavailableError(
                    f"stream {self._name!r} refused {counted(len(batch), 'record')} until the limit of"
                    f" {self._limit:g} s: {reason}"
                )

    def _try_put(self, batch: list[StreamRecord]) -> tuple[list[StreamRecord], str]:
        """Makes one call; returns the records that were refused, and why."""
        request: PutRecordsInputTypeDef = {"Records": _entries(batch)}
        if self._arn is not None:
            request["StreamARN"] = self._arn
        else:
            request["StreamName"] = self._name
        try:
            reply = self._kinesis.put_records(**request)
        except Exception as error:
            known = stream_error(self._name, "PutRecords", error)
            if known.retryable:
                return batch, str(error)
            raise known from error
        if "Records" not in reply:  # boto3 raises it when it reads an answer that broke off
            return batch, "an empty answer"
        pairs = zip(batch, reply["Records"], strict=True)
        refused = [(record, result) for record, result in pairs if result.get("ErrorCode")]
        reason = f"{refused[0][1]['ErrorCode']}: {refused[0][1].get('ErrorMessage', '')}" if refused else ""
        return [record for record, _ in refused], reason


def _entries(batch: Sequence[StreamRecord]) -> list[PutRecordsRequestEntryTypeDef]:
    return [{"Data": r.data, "PartitionKey": r.partition_key, "ExplicitHashKey": r.hash_key} for r in batch]
