"""The clients of the streams that settings name: which id each has, what Kinesis is asked, and several as one."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from kainite.aws import clients as aws
from kainite.base.errors import StreamError
from kainite.kinesis.client import StreamClient, parse_reply
from kainite.kinesis.named_streams import client_of, clients_of
from kainite.kinesis.start_position import StartAt
from kainite.settings import Settings, load
from kainite.settings.several import each_stream
from support.kinesis_double import KinesisDouble
from support.names import unique

ARN = "arn:aws:kinesis:us-east-1:210987654321:stream/orders"
CREATED = 1_700_000_000
"""The second in which the double's stream was created."""
BEGINNING = StartAt("TRIM_HORIZON")


def reading(folder: Path, endpoint: str, *lines: str) -> Settings:
    """Returns the settings of an application on the Kinesis at ``endpoint``."""
    path = folder / "app.properties"
    common = ["applicationName = app", "executableName = a", "regionName = us-east-1", f"kinesisEndpoint = {endpoint}"]
    path.write_text("\n".join([*common, *lines]))
    return load(path)


def first_client(settings: Settings) -> StreamClient:
    return client_of(aws.client("kinesis", settings.aws), each_stream(settings)[0])


def test_one_stream_alone_has_no_id_and_nothing_is_asked(tmp_path: Path, double: KinesisDouble) -> None:
    client = first_client(reading(tmp_path, double.endpoint, "streamName = orders"))

    assert (client.name, client.id) == ("orders", "")
    assert not double.requests


@pytest.mark.parametrize(
    ("lines", "id", "asked"),
    [
        (["streamNames = orders"], f"123456789012:orders:{CREATED}", 1),
        ([f"streamNames = {ARN}"], f"123456789012:orders:{CREATED}", 1),
        (["streamNames = orders", "stream.orders.creationEpoch = 17"], "123456789012:orders:17", 1),
        ([f"streamNames = {ARN}", "stream.orders.creationEpoch = 17"], "210987654321:orders:17", 0),
    ],
)
def test_among_several_kinesis_is_asked_for_what_the_settings_leave_out_of_the_id(
    tmp_path: Path, double: KinesisDouble, lines: list[str], id: str, asked: int
) -> None:
    client = first_client(reading(tmp_path, double.endpoint, *lines))

    assert client.id == id
    assert double.count("DescribeStreamSummary") == asked
    assert client.arn == (ARN if ARN in lines[0] else None)


def test_streams_of_one_name_in_two_accounts_are_told_apart_and_each_is_asked_by_its_own_arn(
    tmp_path: Path, double: KinesisDouble
) -> None:
    arns = [f"arn:aws:kinesis:us-east-1:{account}:stream/orders" for account in ("111111111111", "222222222222")]
    lines = f"streamNames = {', '.join(arns)}", "stream.orders.creationEpoch = 17"
    shards = clients_of(reading(tmp_path, double.endpoint, *lines))

    listed = [shard.id for shard in shards.list_shards()]
    assert listed == [f"{account}:orders:17:{id}" for account in ("1" * 12, "2" * 12) for id in double.shards]
    assert [request.get("StreamARN") for request in double.asked("ListShards")] == arns
    shards.iterator(listed[-1], BEGINNING)
    (asked,) = double.asked("GetShardIterator")
    assert (asked["StreamARN"], asked["ShardId"]) == (arns[1], list(double.shards)[-1])


def test_a_stream_that_may_not_be_described_is_an_error(tmp_path: Path, double: KinesisDouble) -> None:
    double.fail("DescribeStreamSummary", "AccessDeniedException")
    settings = reading(tmp_path, double.endpoint, "streamNames = orders, payments")

    with pytest.raises(StreamError, match="DescribeStreamSummary"):
        clients_of(settings)


def test_the_shards_of_one_stream_keep_their_ids(tmp_path: Path, double: KinesisDouble) -> None:
    shards = clients_of(reading(tmp_path, double.endpoint, "streamName = orders"))

    assert shards.name == "orders"
    assert [shard.id for shard in shards.list_shards()] == list(double.shards)


def test_several_streams_with_equal_shard_ids_are_read_each_by_its_own_keys(
    tmp_path: Path, kinesis: Any, moto_endpoint: str
) -> None:
    names = [unique("orders"), f"{unique('pay')}.ments"]
    for name in names:
        kinesis.create_stream(StreamName=name, ShardCount=1)
        kinesis.put_record(StreamName=name, Data=f"of {name}".encode(), PartitionKey="k")
    shards = clients_of(reading(tmp_path, moto_endpoint, f"streamNames = {', '.join(names)}"))

    listed = [shard.id for shard in shards.list_shards()]
    iterators = [shards.iterator(key, BEGINNING)[0] for key in listed]
    replies = [parse_reply(shards.get_records(iterator, 10)) for iterator in reversed(iterators)]
    read = [[b64decode(record.data or "").decode() for record in reply.records] for reply in replies]

    assert shards.name == ", ".join(names)
    assert [key.split(":")[1] for key in listed] == names
    assert {key.split(":")[3] for key in listed} == {"shardId-000000000000"}
    assert read == [[f"of {name}"] for name in reversed(names)]


def test_a_shard_of_a_stream_that_is_not_named_is_an_error(tmp_path: Path, double: KinesisDouble) -> None:
    shards = clients_of(reading(tmp_path, double.endpoint, "streamNames = orders, payments"))

    with pytest.raises(StreamError, match="of a stream that streamNames does not have"):
        shards.iterator(f"123456789012:former:{CREATED}:shardId-000000000000", BEGINNING)
    with pytest.raises(StreamError, match="of a stream that streamNames does not have"):
        shards.iterator("shardId-000000000000", BEGINNING)
    assert double.count("GetShardIterator") == 0
