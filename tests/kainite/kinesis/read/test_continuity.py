from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from kainite.base.checkpoint import TRIM_HORIZON, Checkpoint
from kainite.base.position import Position
from kainite.base.record import RawRecord
from kainite.child.json_lines.records import render_process_records
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.continuity import Continuity
from kainite.kinesis.read.polling import PollingReader
from kainite.kinesis.start_position import StartAt
from kainite.settings import StreamSettings
from support.kinesis_double import KinesisDouble
from support.sources import read

SHARD = "shardId-000000000000"
GONE = "records may be gone from the stream unread"


def raw(*sequences: int) -> list[RawRecord]:
    return [RawRecord(str(sequence), "k") for sequence in sequences]


def told(caplog: pytest.LogCaptureFixture) -> list[bool]:
    found = [record for record in caplog.records if record.name == "kainite.kinesis.read.continuity"]
    return [record.getMessage().startswith(GONE) for record in found]


def left(records: Sequence[RawRecord]) -> list[int]:
    return [int(record.sequence) for record in records]


@pytest.mark.parametrize(
    ("collected", "start", "first", "is_told"),
    [
        pytest.param(None, StartAt("AT_SEQUENCE_NUMBER", "7"), 7, False, id="the checkpoint's record is there"),
        pytest.param(None, StartAt("AT_SEQUENCE_NUMBER", "7"), 9, True, id="the checkpoint's record is gone"),
        pytest.param(8, StartAt("AT_SEQUENCE_NUMBER", "3"), 7, False, id="what is gone was collected"),
        pytest.param(8, StartAt("AT_SEQUENCE_NUMBER", "3"), 9, True, id="what was collected last is gone"),
        pytest.param(8, StartAt("TRIM_HORIZON"), 8, False, id="no checkpoint, and what was collected last is there"),
        pytest.param(8, StartAt("TRIM_HORIZON"), 9, True, id="no checkpoint, and what was collected last is gone"),
        pytest.param(None, StartAt("TRIM_HORIZON"), 9, False, id="nothing is known"),
        pytest.param(8, StartAt("AT_TIMESTAMP", timestamp=5.0), 9, False, id="a time, which a person chose"),
        pytest.param(None, StartAt("AFTER_SEQUENCE_NUMBER", "7"), 9, False, id="a continuation"),
    ],
)
def test_what_the_first_record_tells(
    collected: int | None, start: StartAt, first: int, is_told: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "kainite.kinesis.read.continuity")
    continuity = Continuity(SHARD, None if collected is None else Position(collected))
    continuity.begins(start)
    assert left(continuity.look(raw(), None)) == []
    assert left(continuity.look(raw(first, first + 3), None)) == [first, first + 3]
    assert left(continuity.look(raw(first + 50), None)) == [first + 50]
    assert told(caplog) == [True] * is_told


def test_what_was_read_does_not_come_twice() -> None:
    continuity = Continuity(SHARD, None)
    continuity.begins(StartAt("AT_SEQUENCE_NUMBER", "7"))
    assert left(continuity.look(raw(7, 8), Position(7, 3))) == [8]
    assert left(continuity.look(raw(9), Position(8))) == [9]


async def test_records_that_vanish_while_nobody_reads_are_told(
    double: KinesisDouble, stream: StreamClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "kainite.kinesis.read.continuity")
    read_before, _, later = double.put(b"1"), double.put(b"2"), double.put(b"3")
    del double.shards[SHARD].records[:2]
    start = Checkpoint(str(read_before))
    reader = PollingReader(stream, SHARD, start, StreamSettings(name="orders"), render=render_process_records)
    try:
        assert await read(reader, 1) == [later]
    finally:
        await reader.close()
    assert told(caplog) == [True]


async def test_records_that_vanish_until_an_iterator_expires_are_told(
    double: KinesisDouble, stream: StreamClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "kainite.kinesis.read.continuity")
    settings = StreamSettings(name="orders", idle_between_reads=0.005)
    reader = PollingReader(stream, SHARD, TRIM_HORIZON, settings, render=render_process_records)
    try:
        for data in (b"1", b"2"):
            put = double.put(data)
            assert await read(reader, 1) == [put]
            double.expire_iterators()
        assert told(caplog) == [], "nothing is gone"
        double.lose(SHARD)
        last = double.put(b"4")
        assert await read(reader, 1) == [last]
    finally:
        await reader.close()
    assert told(caplog) == [True]
