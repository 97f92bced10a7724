"""LocalStack's version, and its differences from AWS in what Kainite relies on."""

from __future__ import annotations

import os
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import orjson
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from support.localstack import GIVEN, HOST, ROOT
from support.names import unique

AT_ONCE = Config(retries={"total_max_attempts": 1}, read_timeout=60)


def test_it_is_the_pinned_version(endpoint: str) -> None:
    with urllib.request.urlopen(f"{endpoint}/_localstack/health", timeout=30) as answer:
        health = orjson.loads(answer.read())

    assert health["version"] == "4.14.0"
    states = {health["services"][name] for name in ("kinesis", "dynamodb", "s3", "cloudwatch")}
    assert states <= {"available", "running"}


def host(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HOST, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(GIVEN in os.environ, reason="LocalStack is somebody else's")
def test_starting_it_again_finds_it_running(endpoint: str) -> None:
    started = host("start", "--name", "tests", "--port", "0")

    assert started.stdout.strip() == endpoint, started.stderr


def test_a_port_that_is_taken_is_said_before_anything_is_started(endpoint: str) -> None:
    started = host("start", "--name", "second", "--port", endpoint.rpartition(":")[2])

    assert started.returncode == 1
    assert "Address already in use; choose another: make localstack LOCALSTACK_PORT=4567" in started.stderr


def test_the_throttling_one_throttles_dynamodb_and_puts_to_streams(throttling_endpoint: str) -> None:
    dynamodb = boto3.client("dynamodb", endpoint_url=throttling_endpoint, config=AT_ONCE)
    kinesis = boto3.client("kinesis", endpoint_url=throttling_endpoint, config=AT_ONCE)

    throttled = {"ResourceNotFoundException", "ProvisionedThroughputExceededException"}

    assert errors_of(lambda: dynamodb.get_item(TableName="no-such-table", Key={"k": {"S": "k"}})) == throttled
    assert errors_of(lambda: kinesis.put_record(StreamName="no-such", Data=b"x", PartitionKey="k")) == throttled


def errors_of(call: Callable[[], object]) -> set[str]:
    """Calls until two kinds of errors came, at most 500 times; returns their codes."""
    codes: set[str] = set()
    for _ in range(500):
        with pytest.raises(ClientError) as failed:
            call()
        codes.add(failed.value.response["Error"]["Code"])
        if len(codes) > 1:
            break
    return codes


def test_fan_out_has_no_place_to_go_on_from_before_the_first_record_and_names_no_children(
    kinesis: Any, endpoint: str
) -> None:
    """Shows two differences: events without a sequence number, and an ended shard without its child shards."""
    name = unique("fan-out")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    kinesis.get_waiter("stream_exists").wait(StreamName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 30})
    arn = kinesis.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]["StreamARN"]
    consumer = kinesis.register_stream_consumer(StreamARN=arn, ConsumerName="c")["Consumer"]["ConsumerARN"]
    start = {"Type": "TRIM_HORIZON"}

    answer = kinesis.subscribe_to_shard(ConsumerARN=consumer, ShardId="shardId-000000000000", StartingPosition=start)
    empty = next(events(answer))
    put = kinesis.put_record(StreamName=name, Data=b"x", PartitionKey="k")
    full = next(event for event in events(answer) if event["Records"])
    answer["EventStream"].close()

    assert empty["ContinuationSequenceNumber"] == "0"
    assert full["ContinuationSequenceNumber"] == put["SequenceNumber"]
    assert not empty.get("ChildShards")
    assert not full.get("ChildShards")


def events(answer: Any) -> Iterator[Any]:
    yield from (event["SubscribeToShardEvent"] for event in answer["EventStream"])
