"""Calls to one Kinesis stream: listing, iterators, and GetRecords without decoding payloads.

boto3 signs, sends and retries. Only its parsing of GetRecords replies is bypassed: it would decode each
payload's base64 and build an object for each record. botocore's ``before-parse``
event hands over the reply's body as it came; the parser is then given an empty one. And a GetRecords call is made by
the pattern of an earlier one, without boto3's work around it, while all goes well (:mod:`kainite.aws.repeated_calls`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from kainite.base.errors import StreamUnavailableError
from kainite.base.record import RawRecord, has_plain_texts
from kainite.kinesis.failures import stream_error
from kainite.kinesis.shards import Shard
from kainite.kinesis.start_position import StartAt
from kainite.kinesis.throttling import Throttling

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient
    from types_boto3_kinesis.type_defs import (
        DescribeStreamSummaryInputTypeDef,
        GetRecordsInputTypeDef,
        GetShardIteratorInputTypeDef,
        ListShardsInputTypeDef,
        StreamDescriptionSummaryTypeDef,
    )

T = TypeVar("T")

_BODY = "KainiteBody"


@dataclass(frozen=True, slots=True)
class GetRecordsReply:
    """A GetRecords reply, payloads still base64.

    Attributes:
        records: the records, in the order of the shard.
        millis_behind_latest: how far behind the newest record, milliseconds.
        next_iterator: None at the shard's end.
        children: at the shard's end, the shards that continue it.
        plain: whether every text of the records is ASCII and needs no escape in JSON.
    """

    records: list[RawRecord]
    millis_behind_latest: int | None
    next_iterator: str | None
    children: tuple[Shard, ...]
    plain: bool = False


@dataclass(frozen=True, slots=True)
class StreamIdentity:
    """The identity of a stream: it tells the stream from an earlier one of the same name, and from one elsewhere.

    Attributes:
        arn: the stream's ARN.
        created_ms: when it was made, in milliseconds since the epoch.
    """

    arn: str
    created_ms: int

    def __str__(self) -> str:
        created = datetime.fromtimestamp(self.created_ms / 1000, UTC).isoformat(timespec="milliseconds")
        return f"{self.arn} made {created}"


class _Body(msgspec.Struct, gc=False):
    """The body of a GetRecords reply."""

    Records: list[RawRecord]
    MillisBehindLatest: int | None = None
    NextShardIterator: str | None = None
    ChildShards: list[dict[str, Any]] | None = None


_REPLY: Final = msgspec.json.Decoder(_Body)


class StreamClient:
    """One stream. All calls block; threads may share it.

    A stream of another account is named by its ARN, so each call that can carries it.

    Shards are named by their keys (:mod:`kainite.base.shard_key`), in what is asked and in what is answered.

    The object takes the boto3 client over: nobody else may call GetRecords on that client, which returns no records.

    Callers hold ``parsing`` while they parse and render a reply's body: parsed records take several times the memory
    of their body, so only one reply at a time is in that form.
    """

    def __init__(self, kinesis: KinesisClient, name: str, arn: str | None = None, id: str = "") -> None:
        self.name = name
        self.arn = arn
        self.id = id
        """The stream's part of its shards' keys; empty in an application of one stream."""
        self.parsing = threading.Lock()
        self.throttling = Throttling(name)
        self._kinesis = kinesis
        kinesis.meta.events.register("before-parse.kinesis.GetRecords", _keep_body, unique_id="kainite-keep-body")
        from kainite.aws.repeated_calls import RepeatedCalls  # late: it imports botocore

        self._records = RepeatedCalls(kinesis, "GetRecords", self._records_by_boto3)

    def list_shards(
        self, *, at_timestamp: float | None = None, from_timestamp: float | None = None
    ) -> tuple[Shard, ...]:
        """Returns all shards that still hold records, or those of them that a time chooses (epoch seconds).

        Args:
            at_timestamp: a time at which the shards were open.
            from_timestamp: a time before which the shards were not closed.

        Raises:
            StreamUnavailableError: throttled, or no answer.
            StreamError: there is no such stream, or it may not be read.
        """
        request: ListShardsInputTypeDef = {"StreamName": self.name}
        if self.arn is not None:
            request["StreamARN"] = self.arn
        if at_timestamp is not None:
            request["ShardFilter"] = {"Type": "AT_TIMESTAMP", "Timestamp": datetime.fromtimestamp(at_timestamp, UTC)}
        elif from_timestamp is not None:
            when = datetime.fromtimestamp(from_timestamp, UTC)
            request["ShardFilter"] = {"Type": "FROM_TIMESTAMP", "Timestamp": when}
        shards: list[Shard] = []
        while True:
            try:
                page = self._kinesis.list_shards(**request)
            except Exception as error:
                raise stream_error(self.name, "ListShards", error) from error
            shards += (Shard.from_listing(item).within(self.id) for item in page.get("Shards", []))
            if not page.get("NextToken"):
                return tuple(shards)
            request = {"NextToken": page["NextToken"]}  # nothing else: the token names the stream

    def now(self) -> float:
        """Returns the time by Kinesis' own clock, epoch seconds, rounded down.

        Raises:
            StreamError, StreamUnavailableError: as :meth:`list_shards`.
        """
        request: ListShardsInputTypeDef = {"StreamName": self.name, "MaxResults": 1}
        if self.arn is not None:
            request["StreamARN"] = self.arn
        try:
            return server_time(self._kinesis.list_shards(**request)["ResponseMetadata"]["HTTPHeaders"])
        except Exception as error:
            raise stream_error(self.name, "ListShards", error) from error

    def identity(self) -> StreamIdentity:
        """Returns the stream's identity: its ARN and the time of its creation.

        Raises:
            StreamUnavailableError: throttled, or no answer.
            StreamError: there is no such stream, or the role may not ask.
        """
        return self._described(
            lambda summary: StreamIdentity(
                summary["StreamARN"], round(summary["StreamCreationTimestamp"].timestamp() * 1000)
            )
        )

    def retention(self) -> float:
        """Returns the seconds for which the stream keeps records.

        Raises:
            StreamError, StreamUnavailableError: as :meth:`identity`.
        """
        return self._described(lambda summary: summary["RetentionPeriodHours"] * 3600.0)

    def _described(self, read: Callable[[StreamDescriptionSummaryTypeDef], T]) -> T:
        """Returns what ``read`` takes from the stream's description."""
        request: DescribeStreamSummaryInputTypeDef = {"StreamName": self.name}
        if self.arn is not None:
            request["StreamARN"] = self.arn
        try:
            return read(self._kinesis.describe_stream_summary(**request)["StreamDescriptionSummary"])
        except Exception as error:
            raise stream_error(self.name, "DescribeStreamSummary", error) from error

    @property
    def region(self) -> str:
        """Returns the region that the client asks."""
        return self._kinesis.meta.region_name

    def shard_id(self, key: str) -> str:
        """Returns the id of a shard by its key; the key of another stream's shard is returned as it is."""
        return key.removeprefix(f"{self.id}:") if self.id else key

    def iterator(self, shard_id: str, start: StartAt) -> tuple[str, float]:
        """Returns an iterator, and the time at which Kinesis made it by its own clock (epoch seconds, rounded down).

        Raises:
            botocore's errors, for :func:`~kainite.aws.failures.classify`.
        """
        request: GetShardIteratorInputTypeDef = {
            "StreamName": self.name,
            "ShardId": self.shard_id(shard_id),
            "ShardIteratorType": start.kind,
        }
        if self.arn is not None:
            request["StreamARN"] = self.arn
        if start.sequence is not None:
            request["StartingSequenceNumber"] = start.sequence
        if start.timestamp is not None:
            request["Timestamp"] = datetime.fromtimestamp(start.timestamp, UTC)
        answer = self._kinesis.get_shard_iterator(**request)
        return answer["ShardIterator"], server_time(answer["ResponseMetadata"]["HTTPHeaders"])

    def get_records(self, iterator: str, limit: int) -> bytes:
        """Returns the body of a GetRecords reply, for :func:`parse_reply`.

        Raises:
            botocore's errors, for :func:`~kainite.aws.failures.classify`.
        """
        request: GetRecordsInputTypeDef = {"ShardIterator": iterator, "Limit": limit}
        if self.arn is not None:
            request["StreamARN"] = self.arn
        return self._records.body(dict(request))

    def _records_by_boto3(self, request: Mapping[str, Any]) -> bytes:
        answer: Mapping[str, Any] = self._kinesis.get_records(**request)
        body: bytes = answer[_BODY]
        return body


def parse_reply(body: bytes) -> GetRecordsReply:
    """Parses the body of a GetRecords reply.

    Raises:
        StreamUnavailableError: the body is cut off, or is no such reply; the call may be made again.
    """
    try:
        reply = _REPLY.decode(body)
        children = tuple(map(Shard.from_end_of_parent, reply.ChildShards or ()))
    except (msgspec.DecodeError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StreamUnavailableError(f"GetRecords answered what is no reply ({error!r}): {body[:80]!r}") from error
    return GetRecordsReply(
        reply.Records, reply.MillisBehindLatest, reply.NextShardIterator, children, has_plain_texts(body)
    )


def _keep_body(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: object) -> None:
    if response_dict["status_code"] == 200:
        customized_response_dict[_BODY] = response_dict["body"]
        response_dict["body"] = b"{}"


def server_time(headers: Mapping[str, str]) -> float:
    """Returns the time of a reply by Kinesis's own clock, epoch seconds, rounded down."""
    date = headers.get("date")
    moment = parsedate_to_datetime(date) if date else datetime.now(UTC)
    return float(int(moment.timestamp()))
