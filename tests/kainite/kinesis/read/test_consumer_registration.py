from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.kinesis.read.consumer_registration import registered_consumer
from kainite.settings import StreamSettings

STREAM = "arn:aws:kinesis:us-east-1:123456789012:stream/orders"
CONSUMER = f"{STREAM}/consumer/app:1"
SETTINGS = StreamSettings(
    "orders", arn=STREAM, describe_consumer_tries=4, register_consumer_tries=2, consumer_backoff=0.5
)


@pytest.fixture
def kinesis() -> Any:
    return boto3.client("kinesis", region_name="us-east-1")


@pytest.fixture
def service(kinesis: Any) -> Iterator[Stubber]:
    with Stubber(kinesis) as service:
        yield service
        service.assert_no_pending_responses()


def consumer(status: str) -> dict[str, Any]:
    return {"ConsumerName": "app", "ConsumerARN": CONSUMER, "ConsumerStatus": status, "ConsumerCreationTimestamp": 1}


def described(service: Stubber, status: str, name: str = "app") -> None:
    answer = {"ConsumerDescription": {**consumer(status), "StreamARN": STREAM}}
    service.add_response("describe_stream_consumer", answer, {"StreamARN": STREAM, "ConsumerName": name})


def refused(service: Stubber, operation: str, code: str) -> None:
    service.add_client_error(operation, code, http_status_code=400)


def run(kinesis: Any, settings: StreamSettings = SETTINGS) -> tuple[str, list[float]]:
    pauses: list[float] = []
    return registered_consumer(kinesis, settings, "app", pauses.append), pauses


def test_an_arn_in_the_settings_is_used_as_it_is(kinesis: Any, service: Stubber) -> None:
    assert run(kinesis, replace(SETTINGS, consumer_arn="arn:given")) == ("arn:given", [])


def test_an_active_consumer_is_found_by_the_name_in_the_settings(kinesis: Any, service: Stubber) -> None:
    described(service, "ACTIVE", name="other")
    assert run(kinesis, replace(SETTINGS, consumer_name="other")) == (CONSUMER, [])


def test_the_streams_arn_is_asked_for_when_the_settings_have_none(kinesis: Any, service: Stubber) -> None:
    summary = {
        "StreamName": "orders", "StreamARN": STREAM, "StreamStatus": "ACTIVE", "RetentionPeriodHours": 24,
        "StreamCreationTimestamp": 1, "EnhancedMonitoring": [], "OpenShardCount": 1,
    }  # fmt: skip
    refused(service, "describe_stream_summary", "LimitExceededException")
    service.add_response("describe_stream_summary", {"StreamDescriptionSummary": summary}, {"StreamName": "orders"})
    described(service, "ACTIVE")
    assert run(kinesis, replace(SETTINGS, arn=None)) == (CONSUMER, [0.5])


def test_a_missing_consumer_is_registered_and_waited_for(kinesis: Any, service: Stubber) -> None:
    refused(service, "describe_stream_consumer", "ResourceNotFoundException")
    refused(service, "register_stream_consumer", "LimitExceededException")
    service.add_response("register_stream_consumer", {"Consumer": consumer("CREATING")})
    described(service, "CREATING")
    described(service, "ACTIVE")
    assert run(kinesis) == (CONSUMER, [0.5] * 3)


def test_another_worker_may_be_faster(kinesis: Any, service: Stubber) -> None:
    refused(service, "describe_stream_consumer", "ResourceNotFoundException")
    refused(service, "register_stream_consumer", "ResourceInUseException")
    described(service, "ACTIVE")
    assert run(kinesis)[0] == CONSUMER


def test_a_consumer_that_is_being_deregistered_is_registered_anew(kinesis: Any, service: Stubber) -> None:
    described(service, "DELETING")
    refused(service, "describe_stream_consumer", "ResourceNotFoundException")
    service.add_response("register_stream_consumer", {"Consumer": consumer("CREATING")})
    described(service, "ACTIVE")
    assert run(kinesis)[0] == CONSUMER


def test_what_is_not_active_in_time_is_an_error(kinesis: Any, service: Stubber) -> None:
    for _ in range(4):
        described(service, "CREATING")
    with pytest.raises(StreamUnavailableError, match="is CREATING, not ACTIVE, after 4 tries"):
        run(kinesis)


def test_the_limit_of_consumers_is_named(kinesis: Any, service: Stubber) -> None:
    refused(service, "describe_stream_consumer", "ResourceNotFoundException")
    for _ in range(2):
        refused(service, "register_stream_consumer", "LimitExceededException")
    with pytest.raises(StreamError, match=r"at most 20 registered consumers.*POLLING"):
        run(kinesis)


def test_a_missing_permission_says_what_to_do(kinesis: Any, service: Stubber) -> None:
    refused(service, "describe_stream_consumer", "AccessDeniedException")
    with pytest.raises(StreamError, match=r"DescribeStreamConsumer is refused.*POLLING"):
        run(kinesis)
