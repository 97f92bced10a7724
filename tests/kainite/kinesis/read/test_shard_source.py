from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.base.checkpoint import TRIM_HORIZON
from kainite.child.json_lines.records import render_process_records
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.record_batch import ShardEnd
from kainite.kinesis.read.shard_source import deciding_range, polling
from kainite.kinesis.shards import HashRange
from kainite.settings import StreamSettings
from support.kinesis_double import KinesisDouble
from support.sources import next_of, read

SHARD = "shardId-000000000000"
SETTINGS = StreamSettings("orders", idle_between_reads=0.001)


@pytest.mark.parametrize(
    ("hash_range", "skip_sync", "decides"),
    [
        (HashRange(0, 10), False, HashRange(0, 10)),
        (HashRange(0, 10), True, None),
        (None, False, None),
        (None, True, None),
    ],
)
def test_the_range_of_a_shard_decides_unless_shards_are_not_looked_at(
    hash_range: HashRange | None, skip_sync: bool, decides: HashRange | None
) -> None:
    assert deciding_range(hash_range, replace(SETTINGS, skip_sync_if_leases=skip_sync)) == decides


async def test_a_polling_source_reads_its_shard_to_the_end(double: KinesisDouble, stream: StreamClient) -> None:
    put = [double.put(b"1"), double.put(b"2")]
    source = polling(stream, render=render_process_records)(SHARD, None, TRIM_HORIZON, SETTINGS, cut_at=None)
    assert source.opened_at is None
    source.ahead.start()
    assert await read(source, 2) == put
    assert source.opened_at is not None
    assert source.millis_behind_latest == 0
    double.split(SHARD)
    assert isinstance(await next_of(source), ShardEnd)
    await source.close()
