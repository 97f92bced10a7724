from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from kainite.base.errors import StreamUnavailableError
from kainite.kinesis.read.subscription import Subscriber, parse_event
from kainite.kinesis.start_position import StartAt
from support.fanout_double import FanOutDouble, exception, initial_response, message, shard_event

SHARD = "shardId-000000000000"
HORIZON = StartAt("TRIM_HORIZON")


@pytest.fixture
def subscriber(pushing: FanOutDouble) -> Iterator[Subscriber]:
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=20)
    client: Any = boto3.client("kinesis", endpoint_url=pushing.endpoint, region_name="us-east-1", config=config)
    yield Subscriber(client, "arn:consumer")
    client.close()


@pytest.mark.parametrize(
    ("start", "position"),
    [
        (HORIZON, {"Type": "TRIM_HORIZON"}),
        (StartAt("AFTER_SEQUENCE_NUMBER", "7"), {"Type": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": "7"}),
        (StartAt("AT_TIMESTAMP", timestamp=5.5), {"Type": "AT_TIMESTAMP", "Timestamp": 5.5}),
    ],
)
def test_a_subscription_begins_at_the_start_position(
    pushing: FanOutDouble, subscriber: Subscriber, start: StartAt, position: dict[str, Any]
) -> None:
    pushing.answer(shard_event(8))
    subscriber.subscribe(SHARD, start).close()
    assert pushing.asked == [{"ConsumerARN": "arn:consumer", "ShardId": SHARD, "StartingPosition": position}]


def test_events_come_in_order_and_other_messages_are_passed_over(pushing: FanOutDouble, subscriber: Subscriber) -> None:
    unknown = message({":message-type": "event", ":event-type": "OfALaterVersion"}, {})
    pushing.answer(initial_response(), shard_event(1, data="AAEC", behind=70), unknown, shard_event(2))
    subscription = subscriber.subscribe(SHARD, HORIZON)
    first, second = subscription.next(), subscription.next()
    assert first is not None
    assert second is not None
    assert [record.data for record in parse_event(first).records] == ["AAEC"]
    assert [record.sequence for record in parse_event(second).records] == ["2"]
    assert subscription.next() is None
    subscription.close()


@pytest.mark.parametrize(
    ("code", "status"), [("ResourceInUseException", 400), ("InternalFailureException", 500)]
)  # fmt: skip
def test_an_exception_in_the_stream_is_raised_as_a_calls_error(
    pushing: FanOutDouble, subscriber: Subscriber, code: str, status: int
) -> None:
    pushing.answer(shard_event(1), exception(code))
    subscription = subscriber.subscribe(SHARD, HORIZON)
    subscription.next()
    with pytest.raises(ClientError) as raised:
        subscription.next()
    assert raised.value.response["Error"]["Code"] == code
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    subscription.close()


@pytest.mark.parametrize("broken", [shard_event(2)[:-9], shard_event(2)[:-1] + b"?"], ids=["cut off", "damaged"])
def test_a_broken_stream_may_be_subscribed_to_again(
    pushing: FanOutDouble, subscriber: Subscriber, broken: bytes
) -> None:
    pushing.answer(broken, then="break")
    subscription = subscriber.subscribe(SHARD, HORIZON)
    with pytest.raises(StreamUnavailableError, match="SubscribeToShard broke off"):
        subscription.next()
    subscription.close()


def test_an_interrupted_subscription_fails(pushing: FanOutDouble, subscriber: Subscriber) -> None:
    pushing.answer(shard_event(1), then="hold")
    subscription = subscriber.subscribe(SHARD, HORIZON)
    assert subscription.next() is not None
    subscription.interrupt()
    with pytest.raises(StreamUnavailableError):
        subscription.next()
    subscription.interrupt()
    subscription.close()


CHILD = {"ShardId": "c", "ParentShards": [SHARD], "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "1"}}


@pytest.mark.parametrize(
    ("payload", "children", "continuation"),
    [
        ({"Records": [], "MillisBehindLatest": 0, "ContinuationSequenceNumber": "7"}, [], "7"),
        ({"Records": [], "MillisBehindLatest": 0, "ChildShards": [CHILD]}, ["c"], None),
        ({"Records": [], "ChildShards": None}, [], None),
    ],
)
def test_an_event_is_parsed(payload: dict[str, Any], children: list[str], continuation: str | None) -> None:
    event = parse_event(json.dumps(payload).encode())
    assert [child.id for child in event.children] == children
    assert (event.continuation, event.millis_behind_latest) == (continuation, payload.get("MillisBehindLatest"))


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"{}", b'{"Records":[],"ChildShards":[{}]}', b'"Records"'])
def test_a_payload_that_is_no_event_is_refused(payload: bytes) -> None:
    with pytest.raises(StreamUnavailableError, match="SubscribeToShard sent"):
        parse_event(payload)
