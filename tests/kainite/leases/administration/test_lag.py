"""The lag of a checkpoint behind the newest record, measured at Kinesis."""

from __future__ import annotations

import time

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, SHARD_END, Checkpoint
from kainite.kinesis.client import StreamClient
from kainite.leases.administration.lag import measure_lags
from kainite.leases.table.lease import Lease
from support.kinesis_double import KinesisDouble
from support.timed_records import SHARD, put_at


def test_a_lag_is_measured_at_the_checkpoint_with_one_record(double: KinesisDouble, stream: StreamClient) -> None:
    numbers = put_at(double, 0.0, 1.0, 2.0)
    lease = Lease(SHARD, checkpoint=Checkpoint(str(numbers[0])))
    assert measure_lags(stream, [lease], None)[SHARD].millis == 2000
    assert double.asked("GetRecords")[-1]["Limit"] == 1
    double.fail("GetRecords", "ProvisionedThroughputExceededException")
    done = Lease(SHARD, checkpoint=Checkpoint(str(numbers[2])))
    assert measure_lags(stream, [done], None)[SHARD].millis == 0


def test_what_cannot_be_measured_says_why(double: KinesisDouble, stream: StreamClient) -> None:
    put_at(double, 0.0)
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
    assert "does not exist" in (lags["shardId-000000000009"].cause or "")
    assert measure_lags(stream, leases[1:2], time.time())["shardId-000000000001"].millis == 0
