from __future__ import annotations

import itertools
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import boto3
import pytest
from botocore.config import Config

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import SettingsError, StreamError
from kainite.base.position import Position
from kainite.base.retry import Backoff
from kainite.child.json_lines.records import render_process_records
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.fan_out import fan_out
from kainite.kinesis.read.http2_transport import use_http2
from kainite.kinesis.read.record_batch import RecordBatch, ShardEnd
from kainite.kinesis.read.shard_source import ShardSource, polling
from kainite.kinesis.read.subscription import Subscriber
from kainite.settings import StreamSettings
from support.fanout_double import FanOutDouble, exception, initial_response, shard_event
from support.sources import LIMIT, next_of, read, sequences
from support.waiting import until

SHARD = "shardId-000000000000"
SETTINGS = StreamSettings(name="orders", idle_between_reads=0.005)

Open = Callable[..., ShardSource]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kainite.kinesis.read.fan_out.SUBSCRIBE_INTERVAL_S", 0.005)
    monkeypatch.setattr("kainite.kinesis.read.fan_out.AWS_BACKOFF", Backoff((0.005,)))


@pytest.fixture(params=["pushing_http1", "pushing_http2"], ids=["HTTP/1.1", "HTTP/2"])
def pushing(request: pytest.FixtureRequest) -> FanOutDouble:
    """Returns the double: whatever is pushed, and however, the reader does the same."""
    double: FanOutDouble = request.getfixturevalue(request.param)
    return double


@pytest.fixture
async def reader_at(pushing: FanOutDouble) -> AsyncIterator[Open]:
    config = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=LIMIT)
    client: Any = boto3.client("kinesis", endpoint_url=pushing.endpoint, region_name="us-east-1", config=config)
    if pushing.over_http2:
        use_http2(client)
    stream = StreamClient(client, "orders")
    open_source = fan_out(
        stream,
        Subscriber(client, "arn:consumer"),
        polling(stream, render=render_process_records),
        render=render_process_records,
    )
    readers: list[ShardSource] = []

    def make(start: Checkpoint, settings: StreamSettings = SETTINGS, cut_at: Position | None = None) -> ShardSource:
        readers.append(open_source(SHARD, None, start, settings, cut_at=cut_at))
        return readers[-1]

    yield make
    for reader in readers:
        await reader.close()
    client.close()


async def test_events_become_batches_and_payloads_stay_as_they_came(pushing: FanOutDouble, reader_at: Open) -> None:
    pushing.answer(initial_response(), shard_event(1, 2, data="AAEC", behind=70), shard_event(3), then="hold")
    reader = reader_at(TRIM_HORIZON)
    batch = await next_of(reader)
    assert isinstance(batch, RecordBatch)
    assert json.loads(batch.line)["records"][0]["data"] == "AAEC"
    assert (batch.first, batch.last, batch.count) == (Position(1), Position(2), 2)
    assert (batch.millis_behind_latest, batch.arrival_ms) == (70, 1500)
    assert await read(reader, 1) == [3]
    assert reader.millis_behind_latest == 0
    assert pushing.asked[0]["ConsumerARN"] == "arn:consumer"


async def test_a_subscription_that_ends_in_its_time_is_renewed_where_it_ended(
    pushing: FanOutDouble, reader_at: Open, caplog: pytest.LogCaptureFixture
) -> None:
    pushing.answer(shard_event(1))
    pushing.answer(shard_event(2, continuation="7"))
    pushing.answer(shard_event(8), then="hold")
    with caplog.at_level(logging.INFO):
        assert await read(reader_at(Checkpoint("0")), 3) == [1, 2, 8]
    assert pushing.positions() == [
        ("AT_SEQUENCE_NUMBER", "0"), ("AFTER_SEQUENCE_NUMBER", "1"), ("AFTER_SEQUENCE_NUMBER", "7"),
    ]  # fmt: skip
    assert not caplog.records


@pytest.mark.parametrize(
    "broken",
    [
        (shard_event(2)[:-9],),
        (shard_event(2)[:-1] + b"?",),
        (exception("ResourceInUseException"),),
        (exception("InternalFailureException"),),
        (exception("KMSThrottlingException"),),
        (),
    ],
    ids=["cut off", "damaged", "taken over", "failed", "throttled", "silent"],
)
async def test_whatever_fails_in_between_nothing_is_lost_or_doubled(
    pushing: FanOutDouble, reader_at: Open, broken: tuple[bytes, ...]
) -> None:
    pushing.answer(shard_event(1), *broken, then="break")
    pushing.answer(*broken)
    pushing.refuse("LimitExceededException")
    pushing.answer(shard_event(2), then="hold")
    assert await read(reader_at(TRIM_HORIZON), 2) == [1, 2]
    assert pushing.positions()[1:] == [("AFTER_SEQUENCE_NUMBER", "1")] * 3


async def test_a_consumer_still_subscribed_elsewhere_is_waited_for_quietly(
    pushing: FanOutDouble, reader_at: Open, caplog: pytest.LogCaptureFixture
) -> None:
    pushing.refuse("ResourceInUseException", times=7)
    pushing.answer(shard_event(1), then="hold")
    with caplog.at_level(logging.INFO):
        assert await read(reader_at(TRIM_HORIZON), 1) == [1]
    assert [record.levelno for record in caplog.records] == [logging.INFO] * 5 + [logging.WARNING] * 2


async def test_records_up_to_the_checkpoint_are_left_out_and_no_batch_straddles_the_cut(
    pushing: FanOutDouble, reader_at: Open
) -> None:
    pushing.answer(shard_event(4, 5, 6, 7), then="hold")
    reader = reader_at(Checkpoint("4"), cut_at=Position(5))
    first, second = await next_of(reader), await next_of(reader)
    assert isinstance(first, RecordBatch)
    assert isinstance(second, RecordBatch)
    assert (sequences(first), sequences(second)) == ([5], [6, 7])


async def test_no_record_is_missed_when_the_first_subscription_at_latest_fails(
    pushing: FanOutDouble, reader_at: Open
) -> None:
    pushing.answer(exception("InternalFailureException"))
    pushing.answer(shard_event(5), then="hold")
    reader = reader_at(LATEST)
    assert await read(reader, 1) == [5]
    assert [kind for kind, _ in pushing.positions()] == ["LATEST", "AT_TIMESTAMP"]
    assert pushing.asked[1]["StartingPosition"]["Timestamp"] == reader.opened_at


async def test_localstacks_continuation_before_the_first_record_is_no_place_to_go_on_from(
    pushing: FanOutDouble, reader_at: Open
) -> None:
    pushing.answer(shard_event(continuation="0"))
    pushing.answer(shard_event(5), then="hold")
    assert await read(reader_at(LATEST), 1) == [5]
    assert [kind for kind, _ in pushing.positions()] == ["LATEST", "AT_TIMESTAMP"]


async def test_a_continuation_that_kinesis_refuses_gives_way_to_the_last_record(
    pushing: FanOutDouble, reader_at: Open
) -> None:
    pushing.answer(shard_event(1, continuation="9"))
    pushing.refuse("InvalidArgumentException")
    pushing.answer(shard_event(2), then="hold")
    assert await read(reader_at(TRIM_HORIZON), 2) == [1, 2]
    assert pushing.positions()[1:] == [("AFTER_SEQUENCE_NUMBER", "9"), ("AT_SEQUENCE_NUMBER", "1")]


async def test_the_last_event_names_the_children(pushing: FanOutDouble, reader_at: Open) -> None:
    pushing.answer(shard_event(1), shard_event(2, children=("a", "b"), parent=SHARD))
    reader = reader_at(TRIM_HORIZON)
    assert await read(reader, 2) == [1, 2]
    for _ in range(2):
        end = await next_of(reader)
        assert isinstance(end, ShardEnd)
        assert [child.id for child in end.children] == ["a", "b"]
        assert all(child.parents == (SHARD,) and child.hash_range for child in end.children)


async def test_children_of_an_open_shard_are_disbelieved(pushing: FanOutDouble, reader_at: Open) -> None:
    pushing.answer(shard_event(1, children=("a",)))
    pushing.answer(shard_event(1), then="hold")
    assert await read(reader_at(TRIM_HORIZON), 1) == [1]
    assert len(pushing.asked) == 2


@pytest.mark.parametrize("found", ["in the listing", "gone"])
async def test_what_is_left_of_a_shard_found_closed_is_polled_to_its_end(
    pushing: FanOutDouble, reader_at: Open, found: str
) -> None:
    put = [pushing.rest.put(bytes([n])) for n in range(4)]
    children = pushing.rest.split(SHARD)
    if found == "gone":
        pushing.answer(shard_event(put[0], put[1]))
        pushing.refuse("ResourceNotFoundException")
    else:
        pushing.answer(shard_event(put[0], put[1]), shard_event(continuation=str(put[1])), then="hold")
    reader = reader_at(TRIM_HORIZON, StreamSettings(name="orders", idle_between_reads=0.005, shard_sync=0))
    assert await read(reader, 4) == put
    end = await next_of(reader)
    assert isinstance(end, ShardEnd)
    assert tuple(child.id for child in end.children) == children


async def test_a_consumer_that_is_gone_is_no_end_of_the_shard(
    pushing: FanOutDouble, reader_at: Open, caplog: pytest.LogCaptureFixture
) -> None:
    pushing.refuse("ResourceNotFoundException")
    pushing.answer(shard_event(1), then="hold")
    assert await read(reader_at(TRIM_HORIZON), 1) == [1]
    assert "was it deregistered?" in str(vars(caplog.records[0]))


async def test_a_reader_started_at_the_end_gives_the_end(pushing: FanOutDouble, reader_at: Open) -> None:
    pushing.rest.split(SHARD)
    end = await next_of(reader_at(SHARD_END))
    assert isinstance(end, ShardEnd)
    assert len(end.children) == 2
    assert not pushing.asked


async def test_what_waiting_does_not_mend_is_raised_again_and_again(pushing: FanOutDouble, reader_at: Open) -> None:
    pushing.refuse("AccessDeniedException")
    reader = reader_at(TRIM_HORIZON)
    for _ in range(2):
        with pytest.raises(StreamError, match="AccessDeniedException"):
            await next_of(reader)
    assert len(pushing.asked) == 1


async def test_a_checkpoint_of_another_stream_is_named(pushing: FanOutDouble, reader_at: Open) -> None:
    pushing.refuse("InvalidArgumentException")
    with pytest.raises(StreamError, match="does not know the checkpoint 17"):
        await next_of(reader_at(Checkpoint("17")))


async def test_at_timestamp_needs_a_time(reader_at: Open) -> None:
    with pytest.raises(SettingsError, match="initialPositionInStreamExtended"):
        await next_of(reader_at(AT_TIMESTAMP))


async def test_the_socket_is_not_read_while_the_queue_is_full(pushing: FanOutDouble, reader_at: Open) -> None:
    megabyte = "A" * 1024 * 1024
    pushing.answer(*(shard_event(n, data=megabyte) for n in range(1, 51)), then="hold")
    reader = reader_at(TRIM_HORIZON)
    reader.ahead.start()
    await until(pushing.stalled.is_set)
    assert pushing.sent < 30
    assert await read(reader, 50) == list(range(1, 51))


async def test_empty_batches_come_only_if_they_are_asked_for(pushing: FanOutDouble, reader_at: Open) -> None:
    pushing.answer(shard_event(continuation="1"), shard_event(2), then="hold")
    assert await read(reader_at(TRIM_HORIZON), 1) == [2]
    pushing.answer(shard_event(continuation="1"), then="hold")
    batch = await next_of(reader_at(TRIM_HORIZON, StreamSettings(name="orders", call_with_empty_batches=True)))
    assert isinstance(batch, RecordBatch)
    assert (batch.count, batch.last) == (0, None)


async def test_closing_ends_a_subscription_that_waits(pushing: FanOutDouble, reader_at: Open) -> None:
    pushing.answer(shard_event(1), then="hold")
    reader = reader_at(TRIM_HORIZON)
    assert await read(reader, 1) == [1]
    threads = {thread for thread in threading.enumerate() if thread.name.startswith(f"fan-out {SHARD}")}
    assert threads
    await reader.close()
    await reader.close()
    await until(pushing.left.is_set)
    await until(lambda: not any(thread.is_alive() for thread in threads))
    with pytest.raises(StreamError, match="closed"):
        await next_of(reader)


async def test_an_event_that_may_have_lain_in_a_buffer_tells_no_tip(
    pushing: FanOutDouble, reader_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = itertools.count(7.0, 0.02)  # an event that was there already takes so long on a busy machine
    monkeypatch.setattr("kainite.kinesis.read.pushed_events.boot_seconds", lambda: next(now))
    pushing.answer(shard_event(continuation="4"), then="hold")
    reader = reader_at(TRIM_HORIZON)
    reader.ahead.start()
    await until(lambda: reader.ahead.queue.reached.until is not None)
    assert reader.ahead.queue.reached.at_tip is None
