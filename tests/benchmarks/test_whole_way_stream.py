"""The whole way's stream releases what it has at its rate, once it is told to begin."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3

STREAM = Path(__file__).parents[2] / "benchmarks" / "whole_way_parts" / "stream.py"
RECORD = b'{"SequenceNumber":"%d","ApproximateArrivalTimestamp":1.5,"Data":"YQ==","PartitionKey":"k"}'


@contextmanager
def serving(folder: Path, rate: float) -> Iterator[Any]:
    """Serves two shards, with the odd units of twenty on the second one."""
    for shard in (0, 1):
        lines = [b"%d %s" % (unit, RECORD % unit) for unit in range(1, 21) if unit % 2 == shard]
        (folder / f"shard-{shard}").write_bytes(b"\n".join(lines))
    command = [sys.executable, str(STREAM), str(folder), "2", str(rate)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            endpoint = f"http://127.0.0.1:{int(process.stdout.readline())}"
            yield boto3.Session("x", "x", region_name="us-east-1").client("kinesis", endpoint_url=endpoint)
        finally:
            process.kill()


def read(kinesis: Any, shard: str, iterator: str = "") -> tuple[list[int], str]:
    iterator = (
        iterator
        or kinesis.get_shard_iterator(StreamName="s", ShardId=shard, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
    )
    reply = kinesis.get_records(ShardIterator=iterator, Limit=4)
    return [int(record["SequenceNumber"]) for record in reply["Records"]], reply["NextShardIterator"]


def test_everything_is_there_at_once_after_the_beginning(tmp_path: Path) -> None:
    with serving(tmp_path, 0) as kinesis:
        first, second = (shard["ShardId"] for shard in kinesis.list_shards(StreamName="s")["Shards"])
        assert kinesis.describe_stream_summary(StreamName="s")["StreamDescriptionSummary"]["OpenShardCount"] == 2
        assert read(kinesis, first)[0] == []
        (tmp_path / "go").write_text(str(time.time()))
        found, following = read(kinesis, second)
        assert found == [1, 3, 5, 7]
        assert read(kinesis, second, following)[0] == [9, 11, 13, 15]


def test_units_come_in_their_time(tmp_path: Path) -> None:
    with serving(tmp_path, 0.01) as kinesis:
        (tmp_path / "go").write_text(str(time.time() - 650.0))
        assert read(kinesis, "shardId-000000000000")[0] == [2, 4, 6]
        assert read(kinesis, "shardId-000000000001")[0] == [1, 3, 5]
