from __future__ import annotations

import asyncio

import pytest

from kainite.base.errors import StreamError
from kainite.kinesis.read.prefetch import Bounds, Prefetch
from kainite.kinesis.read.record_batch import RecordBatch, ShardEnd


def batch(size: int = 10, count: int = 1) -> RecordBatch:
    return RecordBatch((b"x" * size,), count, None, None, None, None)


async def has_room(queue: Prefetch) -> bool:
    try:
        await asyncio.wait_for(queue.room(), 0.01)
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(
    "bounds",
    [Bounds(batches=2), Bounds(batches=9, bytes=20), Bounds(batches=9, records=4)],
    ids=["batches", "bytes", "records"],
)
async def test_each_bound_alone_stops_fetching_until_a_batch_is_taken(bounds: Bounds) -> None:
    queue = Prefetch(bounds)
    queue.put(batch(count=2))
    assert await has_room(queue)
    queue.put(batch(count=2))
    assert not await has_room(queue)
    await queue.take()
    assert await has_room(queue)


async def test_what_ends_the_reader_comes_last_and_stays() -> None:
    queue = Prefetch(Bounds())
    queue.put(batch())
    queue.end(ShardEnd(()))
    queue.end(StreamError("too late"))
    assert isinstance(await queue.take(), RecordBatch)
    assert await queue.take() == ShardEnd(())
    assert await queue.take() == ShardEnd(())


async def test_a_taker_that_waits_is_woken() -> None:
    queue = Prefetch(Bounds())
    taker = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.put(batch(size=7))
    taken = await asyncio.wait_for(taker, 1)
    assert isinstance(taken, RecordBatch)
    assert len(taken.line) == 7


async def test_only_a_mark_at_the_tip_is_one_and_a_later_mark_that_is_none_takes_nothing_back() -> None:
    queue = Prefetch(Bounds(batches=9))
    queue.mark(1.0)
    assert queue.reached.at_tip is None
    queue.mark(2.0, at_tip=True)
    queue.put(batch())
    queue.mark(3.0)
    await queue.take()
    assert queue.reached.at_tip == 2.0
    queue.mark(4.0, at_tip=True)
    assert queue.reached.at_tip == 2.0, "the batch is under way"
    waiting = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert queue.reached.at_tip == 4.0
    waiting.cancel()


async def test_a_mark_is_reached_when_the_batches_before_it_are_done_not_when_they_are_taken() -> None:
    queue = Prefetch(Bounds(batches=9))
    assert queue.reached.until is None
    queue.mark(1.0)
    assert queue.reached.until == 1.0, "nothing had arrived"
    queue.put(batch(), batch())
    queue.mark(2.0)
    queue.put(batch())
    await queue.take()
    await queue.take()
    assert queue.reached.until == 1.0, "the second batch is still under way"
    await queue.take()
    assert queue.reached.until == 2.0
    queue.mark(3.0)
    queue.mark(4.0)
    assert queue.reached.until == 2.0
    waiting = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert queue.reached.until == 4.0
    queue.mark(5.0)
    assert queue.reached.until == 5.0, "the taker waits, and nothing came"
    waiting.cancel()
