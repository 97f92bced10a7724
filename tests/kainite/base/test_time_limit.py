"""A limit on a block's time, in tasks that were cancelled before, meanwhile or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kainite.base.time_limit import time_limit, time_limit_at
from kainite.base.waiting import wait_until_set

SOON = 0.01
NEVER = 3600.0


async def _in_cleanup(cleanup: Callable[[], Awaitable[None]]) -> None:
    """Runs ``cleanup`` in a task that was cancelled, as a ``finally`` does."""
    started = asyncio.Event()

    async def work() -> None:
        try:
            started.set()
            await asyncio.Event().wait()
        finally:
            await cleanup()

    task = asyncio.create_task(work())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_block_that_lasts_too_long_ends_with_timeout_error() -> None:
    with pytest.raises(TimeoutError):
        async with time_limit(SOON):
            await asyncio.Event().wait()


async def test_a_point_in_time_limits_like_a_duration() -> None:
    with pytest.raises(TimeoutError):
        async with time_limit_at(asyncio.get_running_loop().time()):
            await asyncio.Event().wait()


async def test_none_is_no_limit() -> None:
    async with time_limit(None):
        await asyncio.sleep(0)


async def test_a_limit_in_a_cancelled_task_is_a_timeout_and_no_second_cancellation() -> None:
    ends: list[str] = []

    async def cleanup() -> None:
        try:
            async with time_limit(SOON):
                await asyncio.Event().wait()
        except TimeoutError:
            ends.append("timeout")

    await _in_cleanup(cleanup)
    assert ends == ["timeout"]


async def test_waiting_for_an_event_in_a_cancelled_task_returns_when_the_time_is_up() -> None:
    seen: list[bool] = []

    async def cleanup() -> None:
        seen.append(await wait_until_set(asyncio.Event(), SOON))

    await _in_cleanup(cleanup)
    assert seen == [False]


async def test_a_cancellation_within_the_block_stays_a_cancellation() -> None:
    started = asyncio.Event()

    async def work() -> None:
        async with time_limit(NEVER):
            started.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_that_comes_with_the_end_of_the_time_is_not_lost() -> None:
    task: asyncio.Task[None]

    async def work() -> None:
        async with time_limit(SOON):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                task.cancel()  # somebody else's, as the limit's own ends the block
                raise

    task = asyncio.create_task(work())
    with pytest.raises(asyncio.CancelledError):
        await task
