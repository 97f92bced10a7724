"""A timestamp becomes the sequence number of the last record before it."""

from __future__ import annotations

import pytest

from kainite.base.checkpoint import TRIM_HORIZON, Checkpoint
from kainite.kinesis.client import StreamClient
from kainite.leases.administration.seek_to_timestamp import checkpoint_before
from support.kinesis_double import KinesisDouble
from support.timed_records import NOON, SHARD, put_at


@pytest.mark.parametrize(
    ("at", "last_before"),
    [(0.0, None), (0.001, 0), (1.0, 1), (1.4, 1), (1.5, 1), (2000.0, 2), (90_000.0, 3), (90_001.0, 4)],
)
def test_the_checkpoint_is_the_last_record_before_the_time(
    double: KinesisDouble, stream: StreamClient, at: float, last_before: int | None
) -> None:
    numbers = put_at(double, 0.0, 0.5, 1.5, 2000.5, 90_000.0)
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
    numbers = put_at(double, *(n / 100 for n in range(100)))
    assert checkpoint_before(stream, SHARD, NOON + 0.9).checkpoint == Checkpoint(str(numbers[89]))
