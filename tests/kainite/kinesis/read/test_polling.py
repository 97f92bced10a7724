from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.clock import boot_seconds
from kainite.base.errors import SettingsError, StreamError
from kainite.base.position import Position
from kainite.base.retry import Backoff
from kainite.child.json_lines.records import render_process_records, render_process_records_v0
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.polling import PollingReader
from kainite.kinesis.read.prefetch import Bounds
from kainite.kinesis.read.record_batch import RecordBatch, ShardEnd
from kainite.kinesis.read.shard_source import polling
from kainite.kinesis.shards import HashRange
from kainite.observe.meter import Meter
from kainite.observe.metric import EXPIRED_ITERATOR, GET_RECORDS_SUCCESS, GET_RECORDS_TIME, MILLIS_BEHIND_LATEST, Metric
from kainite.settings import StreamSettings
from support import kpl
from support.kinesis_double import KinesisDouble
from support.names import unique
from support.sources import next_of, read, sequences
from support.waiting import until

SHARD = "shardId-000000000000"
FAST = StreamSettings(name="orders", idle_between_reads=0.005)

Open = Callable[..., PollingReader]


@pytest.fixture
async def reader_at(stream: StreamClient) -> AsyncIterator[Open]:
    readers: list[PollingReader] = []

    def make(start: Checkpoint, settings: StreamSettings = FAST, shard: str = SHARD, **more: Any) -> PollingReader:
        readers.append(PollingReader(stream, shard, start, settings, render=render_process_records, **more))
        return readers[-1]

    yield make
    for reader in readers:
        await reader.close()


async def test_records_in_order_from_trim_horizon_and_as_they_come(double: KinesisDouble, reader_at: Open) -> None:
    put = [double.put(bytes([n])) for n in range(5)]
    reader = reader_at(TRIM_HORIZON, StreamSettings(name="orders", idle_between_reads=0.005, max_records=2))
    assert await read(reader, 5) == put
    later = double.put(b"later")
    assert await read(reader, 1) == [later]
    assert reader.millis_behind_latest == 0


async def test_what_arrived_before_the_last_reply_was_asked_for_is_done_when_all_batches_are(
    double: KinesisDouble, reader_at: Open
) -> None:
    put = [double.put(bytes([n])) for n in range(5)]
    began = boot_seconds()
    reader = reader_at(TRIM_HORIZON, StreamSettings(name="orders", idle_between_reads=0.005, max_records=2))
    assert await read(reader, 4) == put[:4]
    assert await read(reader, 1) == put[4:]
    waiting = asyncio.create_task(reader.ahead.next())
    await until(lambda: (reader.ahead.queue.reached.until or 0.0) >= began)
    assert (reader.ahead.queue.reached.until or 0.0) <= boot_seconds()
    double.put(b"later")
    await waiting
    reached = reader.ahead.queue.reached.until
    asked = len(double.asked("GetRecords"))
    await until(lambda: len(double.asked("GetRecords")) > asked + 2)
    assert reader.ahead.queue.reached.until == reached, "the last record is still under way"


async def test_while_a_unit_waits_for_the_reading_one_call_follows_records_early_and_tells_the_tip(
    double: KinesisDouble, reader_at: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kainite.kinesis.read.polling.SOONEST_S", 0.0)
    put = double.put(b"1")
    reader = reader_at(TRIM_HORIZON, StreamSettings(name="orders", idle_between_reads=3_600.0))
    assert await read(reader, 1) == [put]
    waiting = asyncio.create_task(reader.ahead.next())

    def asked_again() -> bool:
        reader.ahead.wanted.set()
        return reader.ahead.queue.reached.at_tip is not None

    await asyncio.sleep(0)
    assert reader.ahead.queue.reached.at_tip is None, "the shard may have been closed before the records were read"
    await until(asked_again)
    for _ in range(20):
        asked_again()
        await asyncio.sleep(0)
    assert double.count("GetRecords") == 2, "the next call is made in its time"
    waiting.cancel()


async def test_a_sequence_number_is_where_reading_goes_on_after(double: KinesisDouble, reader_at: Open) -> None:
    put = [double.put(bytes([n])) for n in range(4)]
    assert await read(reader_at(Checkpoint(str(put[1]))), 2) == put[2:]
    # A checkpoint inside an aggregated record: the record itself is asked for again, though not given out whole.
    assert await read(reader_at(Checkpoint(str(put[1]), 3)), 2) == put[2:]
    kinds = {request["ShardIteratorType"] for request in double.asked("GetShardIterator")}
    assert kinds == {"AT_SEQUENCE_NUMBER"}


async def test_an_expired_iterator_goes_on_after_the_last_record(double: KinesisDouble, reader_at: Open) -> None:
    reader = reader_at(TRIM_HORIZON)
    put = [double.put(b"1"), double.put(b"2")]
    assert await read(reader, 2) == put
    double.expire_iterators()
    later = double.put(b"3")
    assert await read(reader, 1) == [later]
    last = double.asked("GetShardIterator")[-1]
    assert last["ShardIteratorType"] == "AT_SEQUENCE_NUMBER"
    assert int(last["StartingSequenceNumber"]) == put[-1]


async def test_no_record_is_missed_when_the_first_iterator_at_latest_expires(
    double: KinesisDouble, reader_at: Open
) -> None:
    double.put(b"before", shard=SHARD)
    double.shards[SHARD].records[0]["ApproximateArrivalTimestamp"] -= 3600
    double.fail("GetRecords", "ProvisionedThroughputExceededException", times=2)
    reader = reader_at(LATEST)
    reader.ahead.start()
    await until(lambda: double.count("GetShardIterator") == 1)
    put = double.put(b"between the first iterator and the second")
    double.expire_iterators()
    assert await read(reader, 1) == [put]
    kinds = [request["ShardIteratorType"] for request in double.asked("GetShardIterator")]
    assert kinds == ["LATEST", "AT_TIMESTAMP"]


async def test_at_latest_a_position_in_the_log_is_where_reading_goes_on(double: KinesisDouble, reader_at: Open) -> None:
    collected, after = double.put(b"collected"), double.put(b"put while the daemon was down")
    assert await read(reader_at(LATEST, cut_at=Position(collected)), 1) == [after]


async def test_a_batch_never_straddles_the_cut(double: KinesisDouble, reader_at: Open) -> None:
    put = [double.put(bytes([n])) for n in range(5)]
    reader = reader_at(Checkpoint(str(put[0])), cut_at=Position(put[2]))
    first, second = await next_of(reader), await next_of(reader)
    assert isinstance(first, RecordBatch)
    assert isinstance(second, RecordBatch)
    assert (sequences(first), sequences(second)) == (put[1:3], put[3:])
    assert (first.first, first.last, first.count) == (Position(put[1]), Position(put[2]), 2)


def places(batch: RecordBatch | ShardEnd) -> list[tuple[int, int]]:
    assert isinstance(batch, RecordBatch)
    return [(int(r["sequenceNumber"]), r["subSequenceNumber"]) for r in json.loads(batch.line)["records"]]


async def test_a_checkpoint_inside_an_aggregate_is_where_reading_goes_on(
    double: KinesisDouble, reader_at: Open
) -> None:
    put = double.put(kpl.aggregate([kpl.User(bytes([n])) for n in range(5)]))
    plain = double.put(b"plain")
    assert places(await next_of(reader_at(Checkpoint(str(put), 2)))) == [(put, 3), (put, 4), (plain, 0)]
    assert places(await next_of(reader_at(Checkpoint(str(put))))) == [*((put, n) for n in range(1, 5)), (plain, 0)]
    assert places(await next_of(reader_at(Checkpoint(str(put), 4)))) == [(plain, 0)]
    assert places(await next_of(reader_at(LATEST, cut_at=Position(put, 3)))) == [(put, 4), (plain, 0)]


async def test_a_batch_is_cut_inside_an_aggregate(double: KinesisDouble, reader_at: Open) -> None:
    put = double.put(kpl.aggregate([kpl.User(b"x")] * 4))
    reader = reader_at(TRIM_HORIZON, cut_at=Position(put, 1))
    assert places(await next_of(reader)) == [(put, 0), (put, 1)]
    assert places(await next_of(reader)) == [(put, 2), (put, 3)]


@pytest.mark.parametrize("skip_sync", [False, True], ids=["the range decides", "the range is not looked at"])
async def test_an_aggregate_that_straddles_the_shards_range_is_dropped(
    double: KinesisDouble, stream: StreamClient, skip_sync: bool
) -> None:
    inside = double.put(kpl.aggregate([kpl.User(b"x", 0, 0)] * 2, explicit=["10"]))
    straddling = double.put(kpl.aggregate([kpl.User(b"x", 0, 0), kpl.User(b"x", 0, 1)], explicit=["10", "11"]))
    plain = double.put(b"plain")
    settings = replace(FAST, skip_sync_if_leases=skip_sync)
    reader = polling(stream, render=render_process_records)(
        SHARD, HashRange(0, 10), TRIM_HORIZON, settings, cut_at=None
    )
    found = places(await next_of(reader))
    await reader.close()
    kept = [(straddling, 0), (straddling, 1)] if skip_sync else []
    assert found == [(inside, 0), (inside, 1), *kept, (plain, 0)]


async def test_a_reply_of_large_aggregates_comes_in_batches_that_wait_for_room(
    double: KinesisDouble, reader_at: Open
) -> None:
    users = [kpl.User(bytes(1000))] * 300
    put = [double.put(kpl.aggregate(users)) for _ in range(5)]
    double.split(SHARD)
    reader = reader_at(TRIM_HORIZON, bounds=Bounds(batches=1))
    batches = []
    while isinstance(item := await next_of(reader), RecordBatch):
        batches.append(item)
    assert [place for batch in batches for place in places(batch)] == [(s, n) for s in put for n in range(300)]
    assert [batch.count for batch in batches] == [600, 600, 300]
    assert len(item.children) == 2


async def test_the_first_protocols_line_is_made_by_its_own_renderer(
    double: KinesisDouble, stream: StreamClient
) -> None:
    double.put(b"abc")
    source = polling(stream, render=render_process_records_v0)(SHARD, None, TRIM_HORIZON, FAST, cut_at=None)
    batch = await next_of(source)
    await source.close()
    assert isinstance(batch, RecordBatch)
    assert set(json.loads(batch.line)["records"][0]) == {"data", "partitionKey", "sequenceNumber"}


async def test_calls_expired_iterators_and_the_lag_are_measured(double: KinesisDouble, reader_at: Open) -> None:
    noted: list[tuple[Metric, float, str | None]] = []
    put = [double.put(bytes([n])) for n in range(3)]
    double.fail("GetRecords", "ExpiredIteratorException")
    one_by_one = replace(FAST, max_records=1)
    reader = reader_at(TRIM_HORIZON, one_by_one, meter=Meter(Notes(noted)), bounds=Bounds(batches=9))
    assert await read(reader, 3) == put
    await reader.close()

    def values(metric: Metric) -> list[float]:
        return [value for what, value, _ in noted if what is metric]

    assert values(GET_RECORDS_SUCCESS)[:4] == [0, 1, 1, 1]
    assert len(values(GET_RECORDS_TIME)) == len(values(GET_RECORDS_SUCCESS))
    assert values(EXPIRED_ITERATOR) == [1]
    assert values(MILLIS_BEHIND_LATEST)[:3] == [2000, 1000, 0]
    assert {shard for _, _, shard in noted} == {SHARD}


@dataclass
class Notes:
    """A sink that keeps what it is given."""

    noted: list[tuple[Metric, float, str | None]]

    def observe(self, metric: Metric, value: float, shard: str | None) -> None:
        self.noted.append((metric, value, shard))


async def test_a_failing_stream_is_waited_out_and_becomes_an_error_in_the_log(
    double: KinesisDouble, reader_at: Open, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kainite.kinesis.read.polling.AWS_BACKOFF", Backoff((0.001,)))
    double.fail("GetRecords", "InternalFailure", times=7)
    put = double.put(b"1")
    with caplog.at_level(logging.WARNING):
        assert await read(reader_at(TRIM_HORIZON), 1) == [put]
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 5 + [logging.ERROR] * 2


async def test_throttling_is_waited_out_and_is_one_line(
    double: KinesisDouble, reader_at: Open, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kainite.kinesis.read.polling.AWS_BACKOFF", Backoff((0.001,)))
    double.fail("GetRecords", "ProvisionedThroughputExceededException", times=4)
    double.fail("GetRecords", "LimitExceededException", times=3)
    put = double.put(b"1")
    with caplog.at_level(logging.WARNING):
        assert await read(reader_at(TRIM_HORIZON), 1) == [put]
    assert [record.getMessage() for record in caplog.records] == ["reading is throttled"]


async def test_broken_connections_and_replies_lose_and_double_nothing(double: KinesisDouble, reader_at: Open) -> None:
    put = [double.put(bytes([n])) for n in range(6)]
    double.hang_up("GetShardIterator")
    double.hang_up("GetRecords")
    double.answer("GetRecords", b'{"Records":[{"Sequence')
    double.fail("GetRecords", "InternalFailure", status=500)
    assert await read(reader_at(TRIM_HORIZON), 6) == put


async def test_the_end_of_a_split_shard_names_its_children(double: KinesisDouble, reader_at: Open) -> None:
    put = double.put(b"last")
    children = double.split(SHARD)
    reader = reader_at(TRIM_HORIZON)
    assert await read(reader, 1) == [put]
    for _ in range(2):
        end = await next_of(reader)
        assert isinstance(end, ShardEnd)
        assert tuple(child.id for child in end.children) == children
        assert all(child.parents == (SHARD,) and child.hash_range for child in end.children)


async def test_a_reply_that_leaves_the_children_out_is_checked_against_the_listing(
    double: KinesisDouble, reader_at: Open
) -> None:
    double.children_in_replies = False
    children = double.split(SHARD)
    end = await next_of(reader_at(TRIM_HORIZON))
    assert isinstance(end, ShardEnd)
    assert tuple(child.id for child in end.children) == children


async def test_an_unsound_reply_is_asked_for_again_and_its_records_are_not_given_out(
    double: KinesisDouble, reader_at: Open
) -> None:
    record = {"SequenceNumber": "1", "Data": "", "PartitionKey": "k", "ApproximateArrivalTimestamp": 1.0}
    child = {"ShardId": "c", "ParentShards": [SHARD]}
    without_iterator = {"Records": [record], "MillisBehindLatest": 0}
    with_both = {**without_iterator, "NextShardIterator": "x", "ChildShards": [child]}
    double.answer("GetRecords", json.dumps(without_iterator).encode())
    double.answer("GetRecords", json.dumps(with_both).encode())
    put = double.put(b"1")
    assert await read(reader_at(TRIM_HORIZON), 1) == [put]


async def test_a_shard_that_retention_has_removed_is_ended(double: KinesisDouble, reader_at: Open) -> None:
    left, right = double.split(SHARD)
    del double.shards[SHARD]
    end = await next_of(reader_at(Checkpoint("5")))
    assert isinstance(end, ShardEnd)
    assert {child.id for child in end.children} == {left, right}


async def test_a_reader_started_at_the_end_gives_the_end(double: KinesisDouble, reader_at: Open) -> None:
    double.split(SHARD)
    end = await next_of(reader_at(SHARD_END))
    assert isinstance(end, ShardEnd)
    assert len(end.children) == 2


async def test_what_waiting_does_not_mend_is_raised_again_and_again(double: KinesisDouble, reader_at: Open) -> None:
    double.fail("GetRecords", "AccessDeniedException")
    reader = reader_at(TRIM_HORIZON)
    for _ in range(2):
        with pytest.raises(StreamError, match="AccessDeniedException"):
            await next_of(reader)
    assert double.count("GetRecords") == 1


async def test_a_checkpoint_of_another_stream_is_named(double: KinesisDouble, reader_at: Open) -> None:
    double.fail("GetShardIterator", "InvalidArgumentException")
    with pytest.raises(StreamError, match="does not know the checkpoint 17"):
        await next_of(reader_at(Checkpoint("17")))


async def test_at_timestamp_needs_a_time(double: KinesisDouble, reader_at: Open) -> None:
    old, new = double.put(b"old"), double.put(b"new")
    double.shards[SHARD].records[0]["ApproximateArrivalTimestamp"] = 1000.0
    double.shards[SHARD].records[1]["ApproximateArrivalTimestamp"] = 3000.0
    at_time = StreamSettings(name="orders", idle_between_reads=0.005, initial_timestamp=2000.0)
    assert old < new
    assert await read(reader_at(AT_TIMESTAMP, at_time), 1) == [new]
    with pytest.raises(SettingsError, match="initialPositionInStreamExtended"):
        await next_of(reader_at(AT_TIMESTAMP))


async def test_fetching_stops_while_the_queue_is_full(double: KinesisDouble, reader_at: Open) -> None:
    for n in range(10):
        double.put(bytes([n]))
    settings = StreamSettings(name="orders", idle_between_reads=0.001, max_records=1, prefetch_batches=2)
    reader = reader_at(TRIM_HORIZON, settings)
    reader.ahead.start()
    await until(lambda: double.count("GetRecords") == 2)
    await asyncio.sleep(0.05)
    assert double.count("GetRecords") == 2
    await next_of(reader)
    await until(lambda: double.count("GetRecords") == 3)


async def test_empty_batches_come_only_if_they_are_asked_for(double: KinesisDouble, reader_at: Open) -> None:
    asking = StreamSettings(name="orders", idle_between_reads=0.005, call_with_empty_batches=True)
    batch = await next_of(reader_at(TRIM_HORIZON, asking))
    assert isinstance(batch, RecordBatch)
    assert (batch.count, batch.first, batch.last) == (0, None, None)
    assert json.loads(batch.line) == {"action": "processRecords", "records": [], "millisBehindLatest": 0}
    silent = reader_at(TRIM_HORIZON)
    waiting = asyncio.ensure_future(silent.ahead.next())
    before = double.count("GetRecords")
    await until(lambda: double.count("GetRecords") > before + 5)
    assert not waiting.done()
    put = double.put(b"1")
    batch = await asyncio.wait_for(waiting, 10)
    assert isinstance(batch, RecordBatch)
    assert sequences(batch) == [put]


async def test_the_idle_time_passes_between_reads(double: KinesisDouble, reader_at: Open) -> None:
    reader_at(TRIM_HORIZON, StreamSettings(name="orders", idle_between_reads=60.0)).ahead.start()
    await until(lambda: double.count("GetRecords") == 1)
    await asyncio.sleep(0.05)
    assert double.count("GetRecords") == 1


async def test_a_closed_reader_says_so_and_asks_no_more(double: KinesisDouble, reader_at: Open) -> None:
    reader = reader_at(TRIM_HORIZON)
    reader.ahead.start()
    await until(lambda: double.count("GetRecords") > 0)
    await reader.close()
    await reader.close()
    with pytest.raises(StreamError, match="closed"):
        await next_of(reader)


async def test_a_shard_of_moto(kinesis: Any) -> None:
    name = unique("stream")
    kinesis.create_stream(StreamName=name, ShardCount=1)
    for n in range(3):
        kinesis.put_record(StreamName=name, PartitionKey="k", Data=bytes([n]))
    reader = PollingReader(StreamClient(kinesis, name), SHARD, Checkpoint("1"), FAST, render=render_process_records)
    batch = await next_of(reader)
    await reader.close()
    assert isinstance(batch, RecordBatch)
    assert [record["data"] for record in json.loads(batch.line)["records"]] == ["AQ==", "Ag=="]
