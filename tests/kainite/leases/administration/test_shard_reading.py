"""Pages of a shard: how many are read, and what happens when Kinesis throttles."""

from __future__ import annotations

import pytest

from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import StreamUnavailableError
from kainite.kinesis.client import StreamClient
from kainite.kinesis.start_position import StartAt
from kainite.leases.administration.seek_to_timestamp import checkpoint_before
from kainite.leases.administration.shard_reading import TRIES, pages
from support.kinesis_double import KinesisDouble
from support.timed_records import NOON, SHARD, put_at


def test_pages_end_at_the_newest_record_or_at_their_limit(double: KinesisDouble, stream: StreamClient) -> None:
    put_at(double, 0.0, 1.0, 2.0)
    sizes = [len(page.records) for page in pages(stream, SHARD, StartAt("TRIM_HORIZON"), limit=2)]
    assert sizes == [2, 1]
    assert len(list(pages(stream, SHARD, StartAt("TRIM_HORIZON"), limit=1, most=2))) == 2


def test_throttling_is_waited_out_and_not_for_ever(double: KinesisDouble, stream: StreamClient) -> None:
    (number,) = put_at(double, 0.0)
    double.fail("GetRecords", "ProvisionedThroughputExceededException", times=TRIES - 1)
    assert checkpoint_before(stream, SHARD, NOON + 1).checkpoint == Checkpoint(str(number))
    double.fail("GetRecords", "ProvisionedThroughputExceededException", times=TRIES)
    with pytest.raises(StreamUnavailableError):
        checkpoint_before(stream, SHARD, NOON + 1)
