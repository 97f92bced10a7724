from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config

from kainite.base.checkpoint import SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import StreamUnavailableError
from kainite.child.json_lines.records import render_process_records
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.batcher import Batcher
from kainite.kinesis.read.pushed_events import FetchedEvent, PushedEvents
from kainite.kinesis.read.subscription import Subscriber
from kainite.settings import StreamSettings
from support.fanout_double import FanOutDouble, exception, shard_event
from support.sources import sequences

SHARD = "shardId-000000000000"
SETTINGS = StreamSettings("orders", shard_sync=0)


class Reader:
    """Fetches events as a reader does, on the test's own thread."""

    def __init__(self, client: Any, start: Checkpoint) -> None:
        stream = StreamClient(client, "orders")
        batcher = Batcher(start, render_process_records)
        self.events = PushedEvents(stream, Subscriber(client, "arn"), SHARD, start, SETTINGS, None, batcher)

    def read(self) -> list[int]:
        """Fetches one event, accepts it, and returns its sequence numbers."""
        fetched = self.fetch()
        self.events.accept(fetched)
        return sequences(*fetched.records.batches)

    def fetch(self) -> FetchedEvent:
        fetched = self.events.fetch()
        assert fetched is not None
        return fetched


@pytest.fixture
def client(pushing: FanOutDouble) -> Iterator[Any]:
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=20)
    client = boto3.client("kinesis", endpoint_url=pushing.endpoint, region_name="us-east-1", config=config)
    yield client
    client.close()


@pytest.fixture
def reader(client: Any) -> Iterator[Reader]:
    reader = Reader(client, TRIM_HORIZON)
    yield reader
    reader.events.close()


def test_a_failed_subscription_is_opened_again_after_the_last_accepted_event(
    pushing: FanOutDouble, reader: Reader
) -> None:
    pushing.answer(shard_event(1, continuation="4"), exception("InternalFailureException"))
    pushing.answer(shard_event(5), then="hold")
    assert reader.read() == [1]
    with pytest.raises(Exception, match="InternalFailureException"):
        reader.events.fetch()
    assert reader.read() == [5]
    assert pushing.positions() == [("TRIM_HORIZON", None), ("AFTER_SEQUENCE_NUMBER", "4")]


def test_a_forgotten_continuation_gives_way_to_the_last_record(pushing: FanOutDouble, reader: Reader) -> None:
    pushing.answer(shard_event(1, continuation="4"))
    pushing.answer(shard_event(5), then="hold")
    assert reader.read() == [1]
    assert reader.events.fetch() is None
    reader.events.forget_continuation()
    assert reader.read() == [5]
    assert pushing.positions()[1] == ("AT_SEQUENCE_NUMBER", "1")


def test_a_subscription_without_any_event_is_a_failure(pushing: FanOutDouble, reader: Reader) -> None:
    pushing.answer()
    with pytest.raises(StreamUnavailableError, match="ended without any event"):
        reader.events.fetch()


def test_the_last_event_has_the_end_of_the_shard(pushing: FanOutDouble, reader: Reader) -> None:
    pushing.answer(shard_event(2, children=("a", "b"), parent=SHARD))
    fetched = reader.fetch()
    assert fetched.end is not None
    assert [child.id for child in fetched.end.children] == ["a", "b"]


@pytest.mark.parametrize("split", [False, True])
def test_an_idle_shard_is_looked_up_in_the_listing(pushing: FanOutDouble, reader: Reader, split: bool) -> None:
    pushing.answer(shard_event(continuation="4"), then="hold")
    if split:
        pushing.rest.split(SHARD)
    assert reader.fetch().closed == split


def test_a_reader_at_the_end_subscribes_to_nothing(pushing: FanOutDouble, client: Any) -> None:
    assert Reader(client, SHARD_END).fetch().closed
    assert not pushing.asked


def test_an_interrupted_reader_fails_at_once_and_later(pushing: FanOutDouble, reader: Reader) -> None:
    pushing.answer(shard_event(1), then="hold")
    pushing.answer(then="hold")
    assert reader.read() == [1]
    reader.events.interrupt()
    for _ in range(2):
        with pytest.raises(StreamUnavailableError):
            reader.events.fetch()


@pytest.mark.parametrize(("seconds", "waited"), [(0.02, False), (2.0, True)])
def test_an_event_that_a_busy_machine_was_slow_to_read_was_not_surely_waited_for(
    pushing: FanOutDouble, reader: Reader, monkeypatch: pytest.MonkeyPatch, seconds: float, waited: bool
) -> None:
    times = itertools.count(7.0, seconds)
    monkeypatch.setattr("kainite.kinesis.read.pushed_events.boot_seconds", lambda: next(times))
    pushing.answer(shard_event(continuation="4"), then="hold")
    fetched = reader.fetch()
    assert (fetched.waited_since, fetched.surely_waited) == (7.0, waited)
