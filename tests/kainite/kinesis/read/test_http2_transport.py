"""SubscribeToShard over HTTP/2, against a server with TLS that speaks it, and that fails in HTTP/2's own ways."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from kainite.aws.failures import Failure, classify
from kainite.base.errors import StreamUnavailableError
from kainite.kinesis.read.http2_body import WINDOW
from kainite.kinesis.read.http2_transport import use_http2
from kainite.kinesis.read.subscription import Subscriber, Subscription, parse_event
from kainite.kinesis.start_position import StartAt
from support.certificates import Authority
from support.fanout_double import FanOutDouble, initial_response, shard_event
from support.waiting import eventually

SHARD = "shardId-000000000000"
Subscribe = Callable[[], Subscription]


@pytest.fixture
def subscribe(pushing_http2: FanOutDouble) -> Iterator[Subscribe]:
    yield from subscribing(pushing_http2.endpoint)


def subscribing(endpoint: str, read_timeout: float = 20) -> Iterator[Subscribe]:
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=5, read_timeout=read_timeout)
    client: Any = boto3.client(
        "kinesis", endpoint_url=endpoint, region_name="us-east-1", config=config,
        aws_access_key_id="AKID", aws_secret_access_key="secret", aws_session_token="token",
    )  # fmt: skip
    use_http2(client)
    opened: list[Subscription] = []

    def open_one() -> Subscription:
        opened.append(Subscriber(client, "arn:consumer").subscribe(SHARD, StartAt("TRIM_HORIZON")))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()
    client.close()


def sequences(subscription: Subscription, events: int) -> list[str]:
    found = [subscription.next() for _ in range(events)]
    return [record.sequence for payload in found if payload is not None for record in parse_event(payload).records]


def test_a_request_is_signed_as_the_server_sees_it(pushing_http2: FanOutDouble, subscribe: Subscribe) -> None:
    pushing_http2.answer(initial_response(), shard_event(1), then="hold")
    assert sequences(subscribe(), 1) == ["1"]
    (headers,) = pushing_http2.headers
    scope, signed, signature = (part.split("=", 1)[1] for part in headers["authorization"].split(" ", 1)[1].split(", "))
    body = (
        b'{"ConsumerARN": "arn:consumer", "ShardId": "%s", "StartingPosition": {"Type": "TRIM_HORIZON"}}'
        % SHARD.encode()
    )
    url = f"https://{headers[':authority']}{headers[':path']}"
    request = AWSRequest(headers[":method"], url, {k: headers[k] for k in signed.split(";") if k != "host"}, body)
    request.context["timestamp"] = headers["x-amz-date"]
    signer = SigV4Auth(Credentials("AKID", "secret", "token"), "kinesis", "us-east-1")
    assert signature == signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    assert scope.startswith("AKID/")
    assert "host" in signed.split(";")
    assert headers["x-amz-security-token"] == "token"
    assert not {"host", "connection"} & set(headers)


@pytest.mark.parametrize("ending", ["reset", "break"])
def test_a_stream_that_breaks_off_may_be_subscribed_to_again(
    pushing_http2: FanOutDouble, subscribe: Subscribe, ending: Any
) -> None:
    pushing_http2.answer(shard_event(1), then=ending)
    subscription = subscribe()
    with pytest.raises(StreamUnavailableError, match="broke off"):
        sequences(subscription, 2)
    pushing_http2.answer(shard_event(2))
    again = subscribe()
    assert sequences(again, 1) == ["2"]
    assert again.next() is None


def test_after_a_goaway_the_events_that_came_are_read_and_the_end_is_told(
    pushing_http2: FanOutDouble, subscribe: Subscribe
) -> None:
    pushing_http2.answer(shard_event(1), shard_event(2), then="goaway")
    subscription = subscribe()
    assert sequences(subscription, 2) == ["1", "2"]
    subscription.interrupt()
    with pytest.raises(StreamUnavailableError):
        subscription.next()


def test_half_a_message_at_the_end_is_no_end(pushing_http2: FanOutDouble, subscribe: Subscribe) -> None:
    pushing_http2.answer(shard_event(1)[:-3])
    subscription = subscribe()
    with pytest.raises(StreamUnavailableError, match="inside a message"):
        subscription.next()


@pytest.mark.parametrize(
    ("code", "status", "failure"),
    [
        ("ResourceInUseException", 400, Failure.PASSING),
        ("LimitExceededException", 400, Failure.THROTTLED),
        ("ExpiredTokenException", 400, Failure.PASSING),
        ("AccessDeniedException", 400, Failure.DENIED),
        ("ResourceNotFoundException", 400, Failure.GONE),
        ("InternalFailure", 500, Failure.PASSING),
        ("ServiceUnavailable", 503, Failure.PASSING),
    ],
)
def test_refusals_are_those_of_any_call(
    pushing_http2: FanOutDouble, subscribe: Subscribe, code: str, status: int, failure: Failure
) -> None:
    pushing_http2.refuse(code, status=status)
    with pytest.raises(ClientError) as raised:
        subscribe()
    assert raised.value.response["Error"]["Code"] == code
    assert classify(raised.value) is failure


def test_the_server_sends_no_more_than_the_window_until_it_is_read(
    pushing_http2: FanOutDouble, subscribe: Subscribe
) -> None:
    large = [shard_event(number, data="A" * 200_000) for number in range(1, 31)]
    pushing_http2.answer(*large, then="hold")
    subscription = subscribe()
    pushing_http2.stalled.wait(20)
    eventually(lambda: pushing_http2.stalled.is_set())
    assert sum(len(event) for event in large[: pushing_http2.sent]) <= WINDOW
    assert sequences(subscription, 30) == [str(number) for number in range(1, 31)]


def test_a_reader_that_waits_is_interrupted_and_the_server_sees_it_go(
    pushing_http2: FanOutDouble, subscribe: Subscribe
) -> None:
    pushing_http2.answer(shard_event(1), then="hold")
    subscription = subscribe()
    assert sequences(subscription, 1) == ["1"]
    threading.Timer(0.05, subscription.interrupt).start()
    with pytest.raises(StreamUnavailableError, match="interrupted"):
        subscription.next()
    subscription.close()
    assert pushing_http2.left.wait(20)


@pytest.mark.parametrize("parts", [(), (shard_event(1),)], ids=["before the first event", "between events"])
def test_silence_ends_a_subscription(pushing_http2: FanOutDouble, parts: tuple[bytes, ...]) -> None:
    pushing_http2.answer(*parts, then="hold")
    for subscribe in subscribing(pushing_http2.endpoint, read_timeout=0.5):
        subscription = subscribe()
        with pytest.raises(StreamUnavailableError, match=r"nothing came over HTTP/2 for 0\.5 s"):
            sequences(subscription, len(parts) + 1)


def test_a_server_that_is_not_trusted_is_not_asked(
    pushing_http2: FanOutDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(Authority(tmp_path, "another").trust))
    monkeypatch.setattr("kainite.kinesis.read.http2_transport._TLS_S", -4.0)  # its error comes in 10 to 30 s
    for subscribe in subscribing(pushing_http2.endpoint):
        with pytest.raises(Exception, match="Connect timeout") as raised:
            subscribe()
        assert classify(raised.value) is Failure.PASSING
    assert pushing_http2.asked == []


def test_an_endpoint_that_nobody_listens_on_is_away() -> None:
    for subscribe in subscribing("https://127.0.0.1:1"):
        with pytest.raises(Exception, match="Could not connect") as raised:
            subscribe()
        assert classify(raised.value) is Failure.PASSING
