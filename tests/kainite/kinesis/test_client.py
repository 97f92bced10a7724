from __future__ import annotations

import base64
from typing import Any

import pytest
from botocore.exceptions import ClientError

from kainite.base.checkpoint import SHARD_END, Checkpoint
from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.kinesis.client import StreamClient, parse_reply
from kainite.kinesis.shards import covers_all_keys
from kainite.kinesis.start_position import StartAt
from kainite.leases.lineage import may_start
from support.kinesis_double import KinesisDouble, stream_of
from support.names import unique


@pytest.fixture
def name(kinesis: Any) -> str:
    name = unique("stream")
    kinesis.create_stream(StreamName=name, ShardCount=2)
    return name


def test_payloads_come_as_they_were_put_for_every_byte_value(kinesis: Any, name: str) -> None:
    payloads = [bytes([n]) for n in range(256)] + [bytes(range(256)), b"x" * 100_000]
    kinesis.put_records(StreamName=name, Records=[{"Data": p, "PartitionKey": "same"} for p in payloads])
    stream = StreamClient(kinesis, name)
    replies = []
    for shard in stream.list_shards():
        iterator, _ = stream.iterator(shard.id, StartAt("TRIM_HORIZON"))
        replies.append(parse_reply(stream.get_records(iterator, 1000)))
    (records,) = [reply.records for reply in replies if reply.records]
    assert [base64.b64decode(record.data or "") for record in records] == payloads
    assert [record.data for record in records] == [base64.b64encode(p).decode() for p in payloads]


def test_other_operations_and_refusals_are_parsed_by_boto3(double: KinesisDouble, stream: StreamClient) -> None:
    double.fail("GetRecords", "AccessDeniedException")
    with pytest.raises(ClientError, match="AccessDeniedException"):
        stream.get_records("anything", 10)


def test_a_listing_of_many_pages_is_whole(double: KinesisDouble, stream: StreamClient) -> None:
    left, right = double.split("shardId-000000000000")
    child = double.merge(left, right)
    shards = {shard.id: shard for shard in stream.list_shards()}
    assert double.count("ListShards") == 2
    assert [shard.id for shard in shards.values() if shard.open] == [child]
    assert shards[child].parents == (left, right)
    assert shards[left].parents == ("shardId-000000000000",)


def test_a_listing_from_a_time_leaves_out_what_was_closed_before(double: KinesisDouble, stream: StreamClient) -> None:
    double.clock = lambda: 1000.0
    left, right = double.split("shardId-000000000000")
    double.clock = lambda: 2000.0
    child = double.merge(left, right)
    assert {shard.id for shard in stream.list_shards(from_timestamp=2000.0)} == {left, right, child}
    assert {shard.id for shard in stream.list_shards(from_timestamp=2000.5)} == {child}
    assert len(stream.list_shards(from_timestamp=1000.0)) == 4


def test_lineage_of_splits_and_merges_on_moto(kinesis: Any, name: str) -> None:
    stream = StreamClient(kinesis, name)
    first, second = (shard.id for shard in stream.list_shards())
    kinesis.split_shard(StreamName=name, ShardToSplit=first, NewStartingHashKey=str(2**126))
    shards = {shard.id: shard for shard in stream.list_shards()}
    left, right = (shard.id for shard in shards.values() if shard.parents == (first,))
    kinesis.merge_shards(StreamName=name, ShardToMerge=right, AdjacentShardToMerge=second)
    shards = {shard.id: shard for shard in stream.list_shards()}
    (merged,) = (shard for shard in shards.values() if len(shard.parents) == 2)
    assert merged.parents == (right, second)
    assert {shard.id for shard in shards.values() if shard.open} == {left, merged.id}
    assert covers_all_keys(shard for shard in shards.values() if shard.open)
    assert not may_start(merged.parents, {right: SHARD_END, second: Checkpoint("1")})


def test_every_call_that_can_names_the_stream_by_its_arn(double: KinesisDouble) -> None:
    arn = "arn:aws:kinesis:us-east-1:111122223333:stream/orders"
    double.split("shardId-000000000000")
    with stream_of(double, arn) as stream:
        iterator, _ = stream.iterator(stream.list_shards()[0].id, StartAt("TRIM_HORIZON"))
        stream.get_records(iterator, 10)
    first_page, next_page = double.asked("ListShards")
    assert first_page["StreamARN"] == arn
    assert set(next_page) == {"NextToken"}  # Kinesis refuses a token beside a name
    assert double.asked("GetShardIterator")[0]["StreamARN"] == arn
    assert double.asked("GetRecords")[0]["StreamARN"] == arn


def test_moto_reads_by_arn(kinesis: Any, name: str) -> None:
    arn = kinesis.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]["StreamARN"]
    kinesis.put_record(StreamName=name, Data=b"x", ExplicitHashKey="0", PartitionKey="k")
    stream = StreamClient(kinesis, name, arn)
    iterator, _ = stream.iterator(stream.list_shards()[0].id, StartAt("TRIM_HORIZON"))
    assert len(parse_reply(stream.get_records(iterator, 10)).records) == 1


def test_a_stream_is_identified_by_its_arn_and_the_time_it_was_made(
    double: KinesisDouble, stream: StreamClient
) -> None:
    arn = "arn:aws:kinesis:us-east-1:123456789012:stream/orders"
    assert str(stream.identity()) == f"{arn} made 2023-11-14T22:13:20.123+00:00"
    double.created += 60
    assert stream.identity().created_ms == 1_700_000_060_123
    double.fail("DescribeStreamSummary", "AccessDeniedException")
    with pytest.raises(StreamError, match="DescribeStreamSummary is refused"):
        stream.identity()


def test_the_retention_is_known_in_seconds(
    double: KinesisDouble, stream: StreamClient, kinesis: Any, name: str
) -> None:
    assert stream.retention() == 24 * 3600
    kinesis.increase_stream_retention_period(StreamName=name, RetentionPeriodHours=168)
    assert StreamClient(kinesis, name).retention() == 168 * 3600
    double.fail("DescribeStreamSummary", "AccessDeniedException")
    with pytest.raises(StreamError, match="DescribeStreamSummary is refused"):
        stream.retention()


def test_moto_identifies_a_stream_that_was_replaced(kinesis: Any, name: str) -> None:
    stream = StreamClient(kinesis, name)
    first = stream.identity()
    assert stream.identity() == first
    kinesis.delete_stream(StreamName=name)
    kinesis.create_stream(StreamName=name, ShardCount=1)
    assert stream.identity() != first


def test_a_stream_that_is_not_there_is_named(kinesis: Any) -> None:
    with pytest.raises(StreamError, match="'nowhere' does not exist") as raised:
        StreamClient(kinesis, "nowhere").list_shards()
    assert not raised.value.retryable


def test_a_throttled_listing_may_be_asked_again(double: KinesisDouble, stream: StreamClient) -> None:
    double.fail("ListShards", "LimitExceededException")
    with pytest.raises(StreamUnavailableError):
        stream.list_shards()
    assert len(stream.list_shards()) == 1


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"Records":[{"Data"', b"[]", b"{}", b"null"])
def test_a_reply_that_is_none_may_be_asked_for_again(body: bytes) -> None:
    with pytest.raises(StreamUnavailableError):
        parse_reply(body)
