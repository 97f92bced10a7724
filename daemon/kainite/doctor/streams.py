"""Asks Kinesis for the streams of a file: shards, what the role may read, how long records stay."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from kainite.aws.failures import Failure, classify
from kainite.base.errors import KainiteError
from kainite.doctor.aws_calls import allowed, refused, rights
from kainite.doctor.clocks import AWS_REFUSES_S, clock_finding, timed
from kainite.doctor.finding import DoctorFinding, warned, well, wrong
from kainite.kinesis.client import StreamClient, server_time
from kainite.kinesis.shards import Shard
from kainite.settings import Settings

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient

_AREA: Final = "stream"
LONG_ENOUGH_H: Final = 72
"""Hours of retention that a long weekend takes."""

_WEEK_H: Final = 168


def look_at_stream(kinesis: KinesisClient, settings: Settings) -> Iterator[DoctorFinding]:
    """Yields whether a daemon may read the stream."""
    stream = settings.stream
    shards = yield from _shards(kinesis, stream.name, stream.arn, "worker")
    if shards is None:
        return
    where: dict[str, Any] = {"StreamName": stream.name} | ({"StreamARN": stream.arn} if stream.arn else {})
    ask = partial(kinesis.get_shard_iterator, **where, ShardId=shards[0].id, ShardIteratorType="LATEST")
    problem, answer = allowed(_AREA, "kinesis:GetShardIterator", ask, "worker")
    if problem is not None:
        yield problem
        return
    named: Any = {"ShardIterator": answer["ShardIterator"]} | ({"StreamARN": stream.arn} if stream.arn else {})
    read = partial(kinesis.get_records, Limit=1, **named)
    yield from rights(_AREA, f"stream {stream.name}", {"kinesis:GetRecords": read}, "worker")


def look_at_shards(kinesis: KinesisClient, name: str, arn: str | None) -> Iterator[DoctorFinding]:
    """Yields whether a stream that is written to is there."""
    yield from _shards(kinesis, name, arn, "extract")


def look_at_retention(kinesis: KinesisClient, settings: Settings) -> Iterator[DoctorFinding]:
    """Yields how long the stream keeps records: a stop that lasts longer loses them."""
    stream = settings.stream
    where: dict[str, Any] = {"StreamName": stream.name} | ({"StreamARN": stream.arn} if stream.arn else {})
    try:
        found = kinesis.describe_stream_summary(**where)["StreamDescriptionSummary"]
    except (ClientError, BotoCoreError) as error:
        if classify(error) is Failure.DENIED and not (settings.log.enabled or stream.names):
            yield warned(_AREA, "retention is not known: kinesis:DescribeStreamSummary is denied",
                         "allow it to whoever runs kainite doctor")  # fmt: skip
        elif classify(error) is Failure.DENIED:  # the look at the stream tells of anything else
            yield refused(_AREA, "kinesis:DescribeStreamSummary", error, "log")
        return
    hours = found["RetentionPeriodHours"]
    if found["StreamStatus"] not in ("ACTIVE", "UPDATING"):
        yield wrong(_AREA, f"stream {stream.name} is {found['StreamStatus']}", "wait until it is ACTIVE")
    if hours < LONG_ENOUGH_H:
        yield warned(_AREA, f"records stay {hours} h: what is not read by then, after a longer stop, is lost",
                     f"aws kinesis increase-stream-retention-period --stream-name {stream.name}"
                     f" --retention-period-hours {_WEEK_H}")  # fmt: skip
    else:
        yield well(_AREA, f"records stay {hours} h: a stop may last so long")


def look_at_consumer(kinesis: KinesisClient, settings: Settings) -> Iterator[DoctorFinding]:
    """Yields whether the consumer of fan-out is registered, or can be described."""
    stream = settings.stream
    name = stream.consumer_name or settings.leases.application
    try:
        arn = (
            stream.arn
            or kinesis.describe_stream_summary(StreamName=stream.name)["StreamDescriptionSummary"]["StreamARN"]
        )
        by_name: dict[str, Any] = {"StreamARN": arn, "ConsumerName": name}
        given: dict[str, Any] = {"ConsumerARN": stream.consumer_arn} if stream.consumer_arn else by_name
        found = kinesis.describe_stream_consumer(**given)["ConsumerDescription"]
    except ClientError as error:
        if classify(error) is Failure.GONE and stream.consumer_arn is None:
            yield well(_AREA, f"the start registers the consumer {name}")
        else:
            yield refused(_AREA, "kinesis:DescribeStreamConsumer", error, "fan-out")
        return
    yield well(_AREA, f"the consumer {found['ConsumerName']} is {found['ConsumerStatus']}")


def look_at_clock(ask: Callable[[], Any]) -> Iterator[DoctorFinding]:
    """Yields how this host's clock differs from that of AWS.

    Args:
        ask: makes a call of AWS; a refusal tells the time as well.
    """
    answer, ours = timed(lambda: _answered(ask))
    theirs = server_time(answer["ResponseMetadata"]["HTTPHeaders"])
    yield clock_finding("AWS", theirs + 0.5, ours, AWS_REFUSES_S)


def _answered(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except ClientError as error:
        return error.response


def _shards(
    kinesis: KinesisClient, name: str, arn: str | None, policy: str
) -> Generator[DoctorFinding, None, tuple[Shard, ...] | None]:
    """Yields whether a stream has shards; returns them, or None where they are not known."""
    try:
        shards = StreamClient(kinesis, name, arn).list_shards()
    except KainiteError as error:
        yield _without_shards(name, policy, error)
        return None
    yield well(_AREA, f"stream {name} has {sum(shard.open for shard in shards)} open shards")
    return shards


def _without_shards(name: str, policy: str, error: KainiteError) -> DoctorFinding:
    cause = error.__cause__
    if not isinstance(cause, ClientError):
        return wrong(_AREA, str(error), "look at the endpoint, the region and the network")
    if classify(cause) is Failure.GONE:
        made = f"aws kinesis create-stream --stream-name {name}"
        return wrong(_AREA, f"stream {name} does not exist", f"{made}; or look at streamName and regionName")
    return refused(_AREA, "kinesis:ListShards", cause, policy)
