"""Reads a shard's source to the last record that a test put."""

from __future__ import annotations

import asyncio
import json

from kainite.kinesis.read.record_batch import RecordBatch, ShardEnd
from kainite.kinesis.read.shard_source import ShardSource

LIMIT = 60.0


def sequences(*batches: RecordBatch) -> list[int]:
    return [int(record["sequenceNumber"]) for batch in batches for record in json.loads(batch.line)["records"]]


async def next_of(source: ShardSource) -> RecordBatch | ShardEnd:
    async with asyncio.timeout(LIMIT):
        return await source.ahead.next()


async def read(source: ShardSource, count: int) -> list[int]:
    """Returns the sequence numbers of the next ``count`` records, the last of which must end a batch."""
    found: list[int] = []
    while len(found) < count:
        batch = await next_of(source)
        assert isinstance(batch, RecordBatch)
        found += sequences(batch)
    return found
