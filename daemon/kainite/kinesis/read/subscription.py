"""Subscribes to a shard (SubscribeToShard) and reads the events that Kinesis pushes; payloads are not decoded.

boto3 signs the request, and sends it over HTTP/1.1; with :mod:`kainite.kinesis.read.http2_transport` over HTTP/2.
The reply is an event stream that lasts up to five minutes; botocore's ``before-parse`` event hands over the unread
body, and :mod:`kainite.kinesis.read.event_stream` cuts the body into messages. botocore's own parser is not used, for
two reasons: it would decode each payload's base64, and it requires a first message of type ``initial-response``, which
kinesis-mock (LocalStack's Kinesis) does not send.

AWS documents the operation for HTTP/2. The evidence about HTTP/1.1, which is spoken without the extra ``fanout``:

* This project's tests: kinesis-mock 0.6 works over HTTP/1.1.
* LocalStack's test suite runs boto3's ``subscribe_to_shard`` against AWS itself, last validated in June 2024
  (localstack/localstack, tests/aws/services/kinesis/test_kinesis.validation.json).
* Evidence against it: "Using HTTP 1.1 for SubscribeToShard isn't supported, and may break at any time"
  (awslabs/amazon-kinesis-client, pull request 434, 2018); boto/boto3 issue 1690 asks for HTTP/2 and is closed stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from botocore.exceptions import ClientError
from urllib3.exceptions import HTTPError

from kainite.base.errors import StreamUnavailableError
from kainite.base.record import RawRecord, has_plain_texts
from kainite.base.shard_key import ShardKey
from kainite.kinesis.client import server_time
from kainite.kinesis.read.event_stream import EventStreamReader, FramingError, Message
from kainite.kinesis.shards import Shard
from kainite.kinesis.start_position import StartAt

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient
    from types_boto3_kinesis.type_defs import StartingPositionTypeDef

_BODY = "KainiteEvents"
_OPERATION = "SubscribeToShard"
_INITIAL_RESPONSE = (
    b"\x00\x00\x00G\x00\x00\x005\xd9B\x9f\x13\r:message-type\x07\x00\x05event"
    b"\x0b:event-type\x07\x00\x10initial-response{}\x8d\xe0\xc8\xa3"
)


class Body(Protocol):
    """The methods used of urllib3's response, and of :class:`~kainite.kinesis.read.http2_body.Http2Body`."""

    def stream(self) -> Iterator[bytes]: ...
    def shutdown(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ShardEvent:
    """One SubscribeToShardEvent, payloads still base64.

    Attributes:
        records: the records, in the order of the shard; often none: Kinesis sends an event at least every few seconds.
        millis_behind_latest: how far the event is behind the shard's newest record, milliseconds.
        continuation: the sequence number AFTER which the next subscription continues; None at the shard's end.
        children: at the shard's end, the shards that continue the shard.
        plain: whether every text of the records is ASCII and needs no escape in JSON.
    """

    records: list[RawRecord]
    millis_behind_latest: int | None
    continuation: str | None
    children: tuple[Shard, ...]
    plain: bool = False


class _Event(msgspec.Struct, gc=False):
    """The payload of a SubscribeToShardEvent."""

    Records: list[RawRecord]
    MillisBehindLatest: int | None = None
    ContinuationSequenceNumber: str | None = None
    ChildShards: list[dict[str, Any]] | None = None


_EVENT: Final = msgspec.json.Decoder(_Event)


class Subscription:
    """One running event stream. One thread reads; another thread may interrupt the reading."""

    def __init__(self, body: Body, opened_at: float) -> None:
        self.opened_at = opened_at
        self._body = body
        self._messages = _messages(body)

    def next(self) -> bytes | None:
        """Returns the next event, for :func:`parse_event`; None when Kinesis has ended the subscription.

        Raises:
            ClientError: Kinesis sent an exception in place of an event.
            StreamUnavailableError: the stream broke off, or was silent for the client's read timeout.
        """
        try:
            for message in self._messages:
                if _is_event(message):
                    return message.payload
        except (HTTPError, OSError, FramingError) as error:
            raise StreamUnavailableError(f"{_OPERATION} broke off: {error!r}") from error
        return None

    def interrupt(self) -> None:
        """Makes :meth:`next` fail, now and later, also in another thread that waits there."""
        # urllib3 raises an error when the reply has been read to its end: then no thread waits.
        with suppress(ValueError, RuntimeError, OSError):
            self._body.shutdown()

    def close(self) -> None:
        """Closes the connection; may not be called while :meth:`next` is running."""
        self._body.close()


class Subscriber:
    """Subscribes to the shards of one stream as one registered consumer; threads may share it.

    The subscriber takes the boto3 client over: no other part may call SubscribeToShard on it, and would get no events.
    """

    def __init__(self, kinesis: KinesisClient, consumer_arn: str) -> None:
        self.consumer_arn = consumer_arn
        self._kinesis = kinesis
        kinesis.meta.events.register(f"before-parse.kinesis.{_OPERATION}", _keep_body, unique_id="kainite-keep-events")

    def subscribe(self, shard_id: str, start: StartAt) -> Subscription:
        """Opens a subscription.

        Raises:
            ClientError, BotoCoreError: the call failed; :func:`~kainite.aws.failures.classify` tells what it means.
        """
        position: StartingPositionTypeDef = {"Type": start.kind}
        if start.sequence is not None:
            position["SequenceNumber"] = start.sequence
        if start.timestamp is not None:
            position["Timestamp"] = datetime.fromtimestamp(start.timestamp, UTC)
        answer: Mapping[str, Any] = self._kinesis.subscribe_to_shard(
            ConsumerARN=self.consumer_arn, ShardId=ShardKey.of(shard_id).shard_id, StartingPosition=position
        )
        return Subscription(answer[_BODY], server_time(answer["ResponseMetadata"]["HTTPHeaders"]))


def parse_event(payload: bytes) -> ShardEvent:
    """Parses one event.

    Raises:
        StreamUnavailableError: the payload is no event; a new subscription may send the event again.
    """
    try:
        event = _EVENT.decode(payload)
        children = tuple(map(Shard.from_end_of_parent, event.ChildShards or ()))
    except (msgspec.DecodeError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StreamUnavailableError(f"{_OPERATION} sent what is no event ({error!r}): {payload[:80]!r}") from error
    plain = has_plain_texts(payload)
    return ShardEvent(event.Records, event.MillisBehindLatest, event.ContinuationSequenceNumber, children, plain)


def _messages(body: Body) -> Iterator[Message]:
    reader = EventStreamReader()
    for chunk in body.stream():
        yield from reader.feed(chunk)
    if reader.is_inside_message:
        raise FramingError("the stream ended inside a message")


def _is_event(message: Message) -> bool:
    """Tells whether the message holds records; an ``initial-response``, or a message of a later version, holds none."""
    headers = message.headers
    kind = headers.get(":message-type")
    if kind in ("exception", "error"):
        code = headers.get(":exception-type") or headers.get(":error-code") or "Unknown"
        text = headers.get(":error-message") or message.payload.decode(errors="replace")
        # The stream's own status is 200. A message of type "error" has a code that the operation's model lacks.
        status = 500 if kind == "error" or code == "InternalFailureException" else 400
        raise ClientError(
            {"Error": {"Code": code, "Message": text}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
            _OPERATION,
        )
    return headers.get(":event-type") == "SubscribeToShardEvent"


class _Empty:
    """Replaces the body for botocore's parser: an ``initial-response`` and nothing more."""

    def stream(self) -> Iterator[bytes]:
        yield _INITIAL_RESPONSE

    def close(self) -> None:
        pass


def _keep_body(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object) -> None:
    if response_dict["status_code"] == 200:
        customized_response_dict[_BODY] = response_dict["body"]
        response_dict["body"] = _Empty()
