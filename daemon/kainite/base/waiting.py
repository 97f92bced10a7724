"""Waits for an event, for a limited time, for a condition that changes now and then, and for works side by side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from kainite.base.time_limit import time_limit


class Changes:
    """Wakes those who wait for a condition on one event loop, whenever somebody tells of a change.

    An ``asyncio.Condition`` whose state belongs to the loop needs no lock, and telling takes no turn of the loop.
    """

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    def tell(self) -> None:
        """Wakes all tasks that wait; each looks at its condition again."""
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until the condition holds. It still holds when this returns: nothing else runs in between."""
        while not condition():
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                # Nobody may call tell() for days, so no cancelled waiter stays here. After tell() it is gone already.
                with suppress(ValueError):
                    self._waiting.remove(waiter)
                raise


@asynccontextmanager
async def side_by_side(*works: Coroutine[Any, Any, Any]) -> AsyncIterator[tuple[asyncio.Task[Any], ...]]:
    """Runs works while entered, and gives their tasks; cancels in the end what still runs, and waits until it ended."""
    tasks = tuple(map(asyncio.create_task, works))
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def first_to_end(*works: Coroutine[Any, Any, None]) -> None:
    """Runs works until one has ended; raises its error, if it ended by one. The others are cancelled."""
    async with side_by_side(*works) as tasks:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()


async def wait_until_set(event: asyncio.Event, seconds: float) -> bool:
    """Waits until ``event`` is set, for at most ``seconds``; returns whether it is set."""
    # Not wait_for: in Python 3.11 it loses a cancellation that comes as the wait ends.
    with suppress(TimeoutError):
        async with time_limit(seconds):
            await event.wait()
    return event.is_set()
