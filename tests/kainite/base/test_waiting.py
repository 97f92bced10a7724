from __future__ import annotations

import asyncio
from functools import partial

import pytest

from kainite.base.waiting import Changes, first_to_end, side_by_side, wait_until_set


@pytest.mark.parametrize("seconds", [0.0, 60.0])
async def test_an_event_that_is_set_is_not_waited_for(seconds: float) -> None:
    event = asyncio.Event()
    event.set()
    assert await wait_until_set(event, seconds)


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.001])
async def test_the_wait_for_an_event_ends_with_its_time(seconds: float) -> None:
    assert not await wait_until_set(asyncio.Event(), seconds)


async def test_an_event_ends_the_wait() -> None:
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)
    assert await wait_until_set(event, 60)


@pytest.mark.parametrize("set_too", [False, True], ids=["alone", "as the wait ends"])
async def test_a_cancellation_is_not_lost(set_too: bool) -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(wait_until_set(event, 60))
    await asyncio.sleep(0)  # lets the task begin to wait
    if set_too:
        event.set()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_who_waits_looks_again_at_each_change() -> None:
    changes, reached = Changes(), [0]
    waiting = [asyncio.create_task(changes.until(partial(reached.__contains__, count))) for count in range(3)]
    for count in range(3):
        reached.append(count)
        changes.tell()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [task.done() for task in waiting] == [other <= count for other in range(3)]


async def test_a_cancelled_wait_disturbs_nobody() -> None:
    changes, ready = Changes(), False
    waiting = [asyncio.create_task(changes.until(lambda: ready)) for _ in range(2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    ready = True
    changes.tell()
    await waiting[1]
    assert waiting[0].cancelled()


@pytest.mark.parametrize("told", [False, True], ids=["alone", "as it is told"])
async def test_a_cancelled_wait_leaves_nothing_behind(told: bool) -> None:
    changes = Changes()
    waiting = asyncio.create_task(changes.until(lambda: False))
    await asyncio.sleep(0)
    if told:
        changes.tell()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not changes._waiting  # noqa: SLF001 - nobody may tell of a change for days


class Work:
    """Takes a turn of the loop to end when it is cancelled."""

    def __init__(self) -> None:
        self.ended = False

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.ended = True


async def test_works_side_by_side_have_ended_when_what_they_are_beside_ends() -> None:
    first, second = Work(), Work()
    async with side_by_side(first.run(), second.run()) as tasks:
        await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)
    assert first.ended
    assert second.ended
    assert all(task.cancelled() for task in tasks)


async def test_the_first_work_to_end_ends_the_others_and_its_error_is_raised() -> None:
    async def fails() -> None:
        raise ValueError("there")

    async def succeeds() -> None: ...

    other = Work()
    with pytest.raises(ValueError, match="there"):
        await first_to_end(other.run(), fails())
    assert other.ended
    await first_to_end(Work().run(), succeeds())
