from __future__ import annotations

import asyncio

import pytest

from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.kinesis.read.prefetch import Bounds
from kainite.kinesis.read.read_ahead import ReadAhead
from kainite.kinesis.read.record_batch import RecordBatch, ShardEnd

SHARD = "shardId-0"


async def test_a_reader_that_ends_by_a_defect_ends_the_queue_with_an_error() -> None:
    async def defective() -> None:
        raise ZeroDivisionError

    ahead = ReadAhead(SHARD, Bounds(), defective, "reader")
    with pytest.raises(StreamUnavailableError, match="the reader of shard shardId-0 failed: ZeroDivisionError"):
        await asyncio.wait_for(ahead.next(), 20)
    await ahead.close()


def batch(number: int) -> RecordBatch:
    return RecordBatch((b"%d" % number,), 1, None, None, None, None)


class Numbers:
    """Reads ``count`` numbered batches, one at a time, and then waits for ever or ends with ``last``."""

    def __init__(self, count: int, last: ShardEnd | StreamError | None = None) -> None:
        self.started = 0
        self.all_put = asyncio.Event()
        self.put = 0
        self.cancelled = False
        self.ahead = ReadAhead(SHARD, Bounds(batches=2), self._run, "reader")
        self._count = count
        self._last = last

    async def _run(self) -> None:
        self.started += 1
        try:
            for number in range(self._count):
                await self.ahead.queue.room()
                self.ahead.queue.put(batch(number))
                self.put += 1
            if self._last is not None:
                self.ahead.queue.end(self._last)
                return
            self.all_put.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


async def test_the_first_batch_starts_the_task_once() -> None:
    reader = Numbers(3)
    assert reader.started == 0
    assert await reader.ahead.next() == batch(0)
    reader.ahead.start()
    assert [await reader.ahead.next(), await reader.ahead.next()] == [batch(1), batch(2)]
    assert reader.started == 1
    await reader.ahead.close()


async def test_no_more_is_read_ahead_than_the_bounds_allow() -> None:
    reader = Numbers(9)
    await reader.ahead.next()
    for _ in range(5):
        await asyncio.sleep(0)  # gives the task its turns
    assert reader.put == 3
    await reader.ahead.close()


async def test_the_end_of_the_shard_is_returned_as_often_as_asked() -> None:
    reader = Numbers(1, ShardEnd(()))
    assert await reader.ahead.next() == batch(0)
    assert [await reader.ahead.next() for _ in range(2)] == [ShardEnd(())] * 2


async def test_an_error_comes_after_the_batches_before_it() -> None:
    reader = Numbers(1, StreamError("refused"))
    assert await reader.ahead.next() == batch(0)
    for _ in range(2):
        with pytest.raises(StreamError, match="refused"):
            await reader.ahead.next()


async def test_closing_cancels_the_task_and_ends_the_queue() -> None:
    reader = Numbers(0)
    waiting = asyncio.create_task(reader.ahead.next())
    await reader.all_put.wait()
    await reader.ahead.close()
    assert reader.cancelled
    with pytest.raises(StreamError, match="the reader of shard shardId-0 is closed"):
        await waiting
    await reader.ahead.close()


async def test_a_reader_that_never_started_can_be_closed() -> None:
    reader = Numbers(1)
    await reader.ahead.close()
    assert reader.started == 0
