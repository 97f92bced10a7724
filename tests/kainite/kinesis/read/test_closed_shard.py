from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import StreamError
from kainite.base.position import Position
from kainite.child.json_lines.records import render_process_records
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.closed_shard import poll_rest, start_of_rest
from kainite.kinesis.read.prefetch import Bounds, Prefetch
from kainite.kinesis.read.record_batch import RecordBatch, ShardEnd
from kainite.kinesis.read.shard_source import polling
from kainite.settings import StreamSettings
from support.kinesis_double import KinesisDouble
from support.sources import sequences

SHARD = "shardId-000000000000"
SETTINGS = StreamSettings("orders", idle_between_reads=0.001)


@pytest.mark.parametrize(
    ("start", "continuation", "queued", "opened_at", "rest", "timestamp"),
    [
        (TRIM_HORIZON, None, None, 5.0, TRIM_HORIZON, None),
        (SHARD_END, None, None, None, SHARD_END, None),
        (Checkpoint("4"), None, None, None, Checkpoint("4"), None),
        (Checkpoint("4"), "7", None, None, Checkpoint("7"), None),
        (Checkpoint("4"), "7", Position(6, 1), None, Checkpoint("7"), None),
        (Checkpoint("4"), "7", Position(7, 3), None, Checkpoint("7", 3), None),
        (Checkpoint("4"), None, Position(6, 1), None, Checkpoint("6", 1), None),
        (LATEST, None, None, 5.0, AT_TIMESTAMP, 5.0),
        (LATEST, None, None, None, LATEST, None),
        (LATEST, "7", None, 5.0, Checkpoint("7"), None),
    ],
)
def test_polling_continues_after_the_last_record_or_event(
    start: Checkpoint,
    continuation: str | None,
    queued: Position | None,
    opened_at: float | None,
    rest: Checkpoint,
    timestamp: float | None,
) -> None:
    found = start_of_rest(start, SETTINGS, continuation=continuation, queued=queued, opened_at=opened_at)
    assert found == (rest, replace(SETTINGS, initial_timestamp=timestamp))


async def test_the_rest_is_queued_up_to_the_shards_end(double: KinesisDouble, stream: StreamClient) -> None:
    put = [double.put(b"1"), double.put(b"2")]
    children = double.split(SHARD)
    queue = Prefetch(Bounds(batches=9))
    source = polling(stream, render=render_process_records)(SHARD, None, TRIM_HORIZON, SETTINGS, cut_at=None)
    await poll_rest(source, queue)
    batch, end = await queue.take(), await queue.take()
    assert isinstance(batch, RecordBatch)
    assert isinstance(end, ShardEnd)
    assert sequences(batch) == put
    assert tuple(child.id for child in end.children) == children


async def test_an_error_of_polling_ends_the_queue(double: KinesisDouble, stream: StreamClient) -> None:
    double.fail("GetRecords", "AccessDeniedException")
    queue = Prefetch(Bounds())
    source = polling(stream, render=render_process_records)(SHARD, None, TRIM_HORIZON, SETTINGS, cut_at=None)
    await poll_rest(source, queue)
    with pytest.raises(StreamError, match="AccessDeniedException"):
        await queue.take()
