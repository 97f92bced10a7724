"""Fan-out over kinesis-mock, boto3 and HTTP/1.1: the proof that it works with what LocalStack runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from kainite.base.checkpoint import TRIM_HORIZON, Checkpoint
from kainite.child.json_lines.records import render_process_records
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.consumer_registration import registered_consumer
from kainite.kinesis.read.fan_out import fan_out
from kainite.kinesis.read.record_batch import ShardEnd
from kainite.kinesis.read.shard_source import ShardSource, polling
from kainite.kinesis.read.subscription import Subscriber
from kainite.settings import StreamSettings
from support.kinesis_local import client_of, kinesis_local
from support.names import unique
from support.sources import next_of, read

SHARD = "shardId-000000000000"

Open = Callable[[Checkpoint], ShardSource]


@pytest.fixture(scope="session")
def local_endpoint() -> Iterator[str]:
    with kinesis_local() as endpoint:
        yield endpoint


@pytest.fixture
def local(local_endpoint: str) -> Iterator[Any]:
    client = client_of(local_endpoint)
    yield client
    client.close()


@pytest.fixture
def settings(local: Any) -> StreamSettings:
    name = unique("stream")
    local.create_stream(StreamName=name, ShardCount=1)
    local.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    return StreamSettings(
        name, idle_between_reads=0.05, shard_sync=0.5, consumer_backoff=0.05, describe_consumer_tries=200
    )


@pytest.fixture
async def reader_at(local: Any, settings: StreamSettings) -> AsyncIterator[Open]:
    consumer = await asyncio.to_thread(registered_consumer, local, settings, "orders-app")
    stream = StreamClient(local, settings.name)
    open_source = fan_out(
        stream,
        Subscriber(local, consumer),
        polling(stream, render=render_process_records),
        render=render_process_records,
    )
    readers: list[ShardSource] = []

    def make(start: Checkpoint) -> ShardSource:
        readers.append(open_source(SHARD, None, start, settings, cut_at=None))
        return readers[-1]

    yield make
    for reader in readers:
        await reader.close()


def put(kinesis: Any, settings: StreamSettings, *payloads: bytes) -> list[int]:
    answers = [kinesis.put_record(StreamName=settings.name, PartitionKey="k", Data=data) for data in payloads]
    return [int(answer["SequenceNumber"]) for answer in answers]


async def test_records_come_while_subscribed_and_the_next_reader_takes_over_where_this_one_ends(
    local: Any, settings: StreamSettings, reader_at: Open
) -> None:
    before = put(local, settings, b"1", b"2")
    first, second = reader_at(TRIM_HORIZON), reader_at(Checkpoint(str(before[1])))
    assert await read(first, 2) == before
    while_subscribed = put(local, settings, b"3")
    assert await read(first, 1) == while_subscribed
    second.ahead.start()  # is refused, for the first one is still subscribed
    await first.close()
    assert await read(second, 1) == while_subscribed


async def test_a_split_while_subscribed_ends_the_shard_after_its_last_record(
    local: Any, settings: StreamSettings, reader_at: Open
) -> None:
    reader = reader_at(TRIM_HORIZON)
    first = put(local, settings, b"1")
    assert await read(reader, 1) == first
    last = put(local, settings, b"2")
    local.split_shard(StreamName=settings.name, ShardToSplit=SHARD, NewStartingHashKey=str(2**127))
    assert await read(reader, 1) == last
    end = await next_of(reader)
    assert isinstance(end, ShardEnd)
    assert sorted(child.id for child in end.children) == ["shardId-000000000001", "shardId-000000000002"]


async def test_workers_that_register_together_share_one_consumer(local: Any, settings: StreamSettings) -> None:
    arns = await asyncio.gather(*(asyncio.to_thread(registered_consumer, local, settings, "shared") for _ in range(4)))
    assert len(set(arns)) == 1
