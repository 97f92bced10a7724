"""The demo's stream is resharded while records come; its double of Kinesis then does what Kinesis does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kainite.kinesis.client import StreamClient, parse_reply
from kainite.kinesis.shards import Shard
from kainite.kinesis.start_position import StartAt
from kainite_demo import services
from kainite_demo.resharding import Resharding

COUNT = 30


@pytest.fixture(scope="module")
def kinesis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with services.moto(tmp_path_factory.mktemp("moto") / "log") as address:
        yield services.kinesis_client(address())


def put(kinesis: Any, name: str, start: int) -> None:
    for number in range(start, start + COUNT):
        kinesis.put_record(StreamName=name, Data=b"%d" % number, PartitionKey=f"k{number}")


def read(client: StreamClient, shard: Shard) -> tuple[list[str], bool]:
    """Returns a shard's records, and whether it ended."""
    iterator, records = client.iterator(shard.id, StartAt("TRIM_HORIZON"))[0], []
    while True:
        reply = parse_reply(client.get_records(iterator, 7))
        records += reply.records
        if reply.next_iterator is None or not reply.records:
            return [record.data or "" for record in records], reply.next_iterator is None
        iterator = reply.next_iterator


def test_closed_shards_end_and_their_children_go_on(kinesis: Any, tmp_path: Path) -> None:
    kinesis.create_stream(StreamName="changes", ShardCount=3)
    resharding = Resharding(kinesis, "changes", at=10.0)
    put(kinesis, "changes", 0)
    resharding.look(9.0)
    client = StreamClient(services.kinesis_client(kinesis.meta.endpoint_url), "changes")
    assert len(client.list_shards()) == 3
    resharding.look(10.0)
    put(kinesis, "changes", COUNT)
    resharding.look(14.0)
    assert len(client.list_shards()) == 5
    resharding.look(15.0)
    resharding.look(16.0)
    put(kinesis, "changes", 2 * COUNT)
    shards = client.list_shards()
    ranges = sorted((one.hash_range.start, one.hash_range.end) for one in shards if one.open and one.hash_range)
    assert [end + 1 for _, end in ranges] == [start for start, _ in ranges[1:]] + [2**128]
    assert len(shards) == 6
    assert sorted(len(shard.parents) for shard in shards) == [0, 0, 0, 1, 1, 2]
    came = [read(client, shard) for shard in shards]
    assert [ended for _, ended in came] == [not shard.open for shard in shards]
    assert sum(len(records) for records, _ in came) == 3 * COUNT, "no record is lost, none is there twice"
