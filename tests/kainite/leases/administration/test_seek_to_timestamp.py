"""A time becomes the number of the last record before it; and how far a checkpoint is behind."""

from __future__ import annotations

import time

import pytest

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import StreamUnavailableError
from kainite.base.retry import Backoff
from kainite.kinesis.client import StreamClient
from kainite.leases.administration import shard_reading as probe
from kainite.leases.administration.lag import measure_lags
from kainite.leases.administration.seek_to_timestamp import checkpoint_before
from kainite.leases.table.lease import Lease
from support.kinesis_double import KinesisDouble

SHARD = "shardId-000000000000"
NOON = 1_760_000_000.0


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PAUSE_S", 0.0)
    monkeypatch.setattr(probe, "AWS_BACKOFF", Backoff((0.0,)))


def put(double: KinesisDouble, *arrivals: float) -> list[int]:
    """Records that came in at these seconds after noon; returns their sequence numbers."""
    numbers = [double.put(b"x", shard=SHARD) for _ in arrivals]
    for record, arrival in zip(double.shards[SHARD].records[-len(arrivals) :], arrivals, strict=True):
        record["ApproximateArrivalTimestamp"] = NOON + arrival
    return numbers


@pytest.mark.parametrize(
    ("at", "last_before"),
    [(0.0, None), (0.001, 0), (1.0, 1), (1.4, 1), (1.5, 1), (2000.0, 2), (90_000.0, 3), (90_001.0, 4)],
)
def test_the_checkpoint_is_the_last_record_before_the_time(
    double: KinesisDouble, stream: StreamClient, at: float, last_before: int | None
) -> None:
    numbers = put(double, 0.0, 0.5, 1.5, 2000.5, 90_000.0)
    found = checkpoint_before(stream, SHARD, NOON + at)
    assert found.checkpoint == (TRIM_HORIZON if last_before is None else Checkpoint(str(numbers[last_before])))
    assert found.followed == (at <= 90_000.0)


def test_an_empty_shard_begins_at_its_beginning(stream: StreamClient) -> None:
    found = checkpoint_before(stream, SHARD, NOON)
    assert (found.checkpoint, found.followed) == (TRIM_HORIZON, False)


def test_many_pages_before_the_time_are_read_to_their_end(
    double: KinesisDouble, stream: StreamClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kainite.leases.administration.seek_to_timestamp.PAGE", 7)
    numbers = put(double, *(n / 100 for n in range(100)))
    assert checkpoint_before(stream, SHARD, NOON + 0.9).checkpoint == Checkpoint(str(numbers[89]))


def test_throttling_is_waited_out_and_not_for_ever(double: KinesisDouble, stream: StreamClient) -> None:
    (number,) = put(double, 0.0)
    double.fail("GetRecords", "ProvisionedThroughputExceededException", times=probe.TRIES - 1)
    assert checkpoint_before(stream, SHARD, NOON + 1).checkpoint == Checkpoint(str(number))
    double.fail("GetRecords", "ProvisionedThroughputExceededException", times=probe.TRIES)
    with pytest.raises(StreamUnavailableError):
        checkpoint_before(stream, SHARD, NOON + 1)


def test_a_lag_is_measured_at_the_checkpoint_with_one_record(double: KinesisDouble, stream: StreamClient) -> None:
    numbers = put(double, 0.0, 1.0, 2.0)
    lease = Lease(SHARD, checkpoint=Checkpoint(str(numbers[0])))
    assert measure_lags(stream, [lease], None)[SHARD].millis == 2000
    assert double.asked("GetRecords")[-1]["Limit"] == 1
    double.fail("GetRecords", "ProvisionedThroughputExceededException")
    done = Lease(SHARD, checkpoint=Checkpoint(str(numbers[2])))
    assert measure_lags(stream, [done], None)[SHARD].millis == 0


def test_what_cannot_be_measured_says_why(double: KinesisDouble, stream: StreamClient) -> None:
    put(double, 0.0)
    leases = [
        Lease(SHARD, checkpoint=LATEST),
        Lease("shardId-000000000001", checkpoint=AT_TIMESTAMP),
        Lease("shardId-000000000009"),
        Lease("shardId-000000000008", checkpoint=SHARD_END),
    ]
    lags = measure_lags(stream, leases, None)
    assert [lag.millis for lag in lags.values()] == [None] * 3
    assert "LATEST" in (lags[SHARD].cause or "")
    assert "initialPositionInStreamExtended" in (lags["shardId-000000000001"].cause or "")
    assert "is not there" in (lags["shardId-000000000009"].cause or "")
    assert measure_lags(stream, leases[1:2], time.time())["shardId-000000000001"].millis == 0
