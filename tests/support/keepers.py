"""Lease keepers at work, and waiting for what they tell."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kainite.leases.keeper import Gained, HeldLease, LeaseEvent, LeaseKeeper
from kainite.settings import InitialPosition, StreamSettings

FIRST, SECOND = "shardId-000000000000", "shardId-000000000001"
STREAM = StreamSettings(name="orders", initial_position=InitialPosition.TRIM_HORIZON, parent_poll=0.1, shard_sync=0.2)

Keep = Callable[..., LeaseKeeper]
"""Makes a keeper over the test's table and stream; see the fixture ``keep``."""


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time

    def advance(self, seconds: float) -> bool:
        """Go on; always true, to stand in a condition."""
        self.time += seconds
        return True


@asynccontextmanager
async def running(keeper: LeaseKeeper) -> AsyncIterator[LeaseKeeper]:
    """The keeper at work; left as a crash leaves it, unless it is closed."""
    task = asyncio.create_task(keeper.run())
    try:
        yield keeper
    finally:
        task.cancel()
        await asyncio.wait([task])


async def event_of(keeper: LeaseKeeper) -> LeaseEvent:
    return await asyncio.wait_for(keeper.next_event(), 10)


async def gain(keeper: LeaseKeeper) -> HeldLease:
    event = await event_of(keeper)
    assert isinstance(event, Gained)
    return event.lease


async def gain_all(keeper: LeaseKeeper, count: int) -> dict[str, HeldLease]:
    gained = [await gain(keeper) for _ in range(count)]
    return {held.shard_id: held for held in gained}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - it becomes true in DynamoDB
            await asyncio.sleep(0.005)
