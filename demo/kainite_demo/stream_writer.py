"""Records to a Kinesis stream: packed into PutRecords calls, refused ones sent again.

:func:`pack` is pure. :func:`put_all` returns when every record is on the stream. A crash before
that leaves some of them there; the extractor sends the whole transaction again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from kainite.errors import SourceError
from kainite_demo.records import StreamRecord

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient
    from types_boto3_kinesis.type_defs import PutRecordsRequestEntryTypeDef

# Kinesis Data Streams, Quotas and limits: records and bytes of a PutRecords call, bytes of a record.
MAX_RECORDS = 500
MAX_BYTES = 5 * 1024 * 1024
MAX_RECORD_BYTES = 1024 * 1024
_COME_AGAIN = frozenset({"ProvisionedThroughputExceededException", "LimitExceededException", "InternalFailure"})
_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


def pack(records: Iterable[StreamRecord]) -> Iterator[list[StreamRecord]]:
    """Cut records into batches that PutRecords takes, in order.

    Raises:
        SourceError: one record alone is too large.
    """
    batch: list[StreamRecord] = []
    size = 0
    for record in records:
        if record.size > MAX_RECORD_BYTES:
            raise SourceError(f"a change of {record.partition_key} takes {record.size} bytes; Kinesis takes 1 MiB")
        if batch and (len(batch) == MAX_RECORDS or size + record.size > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += record.size
    if batch:
        yield batch


def put_all(kinesis: KinesisClient, stream: str, records: Iterable[StreamRecord], limit: float = 30.0) -> int:
    """Put records on the stream, whatever it takes.

    Args:
        kinesis: a boto3 client.
        stream: the stream's name.
        records: any number.
        limit: seconds that a batch may take in all, with its repetitions.

    Returns:
        How many records were put.

    Raises:
        SourceError: a record is too large, or the stream went on refusing.
    """
    total = 0
    for batch in pack(records):
        _put_batch(kinesis, stream, batch, time.monotonic() + limit)
        total += len(batch)
    return total


def _put_batch(kinesis: KinesisClient, stream: str, batch: list[StreamRecord], deadline: float) -> None:
    pause = _FIRST_PAUSE
    while batch:
        batch, reason = _try_put(kinesis, stream, batch)
        if batch and time.monotonic() + pause > deadline:
            raise SourceError(f"stream {stream} refused {len(batch)} records until the limit: {reason}")
        if batch:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _try_put(kinesis: KinesisClient, stream: str, batch: list[StreamRecord]) -> tuple[list[StreamRecord], str]:
    """One call; the records that were refused, and why."""
    try:
        reply = kinesis.put_records(StreamName=stream, Records=_entries(batch))
    except BotoCoreError as error:
        return batch, str(error)
    except ClientError as error:
        if error.response["Error"].get("Code") not in _COME_AGAIN:
            raise SourceError(f"stream {stream}: {error}") from None
        return batch, str(error)
    if "Records" not in reply:  # boto3's reading of an answer that broke off
        return batch, "an empty answer"
    pairs = zip(batch, reply["Records"], strict=True)
    refused = [(record, result) for record, result in pairs if result.get("ErrorCode")]
    reason = f"{refused[0][1]['ErrorCode']}: {refused[0][1].get('ErrorMessage', '')}" if refused else ""
    return [record for record, _ in refused], reason


def _entries(batch: Sequence[StreamRecord]) -> list[PutRecordsRequestEntryTypeDef]:
    return [{"Data": r.data, "PartitionKey": r.partition_key, "ExplicitHashKey": r.hash_key} for r in batch]
