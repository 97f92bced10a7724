"""Lease keepers at work, and waiting for the events that they report."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kainite.leases.keeper import Gained, HeldLease, LeaseEvent, LeaseKeeper
from kainite.leases.table.lease_table import LeaseTable
from kainite.observe.metric import TAKEN_LEASES, Metric
from kainite.settings import InitialPosition, StreamSettings

FIRST, SECOND = "shardId-000000000000", "shardId-000000000001"
STREAM = StreamSettings(name="orders", initial_position=InitialPosition.TRIM_HORIZON, parent_poll=0.1, shard_sync=0.2)

Keep = Callable[..., LeaseKeeper]
"""Makes a keeper over the test's table and stream; see the fixture ``keep``."""


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time

    def advance(self, seconds: float) -> bool:
        """Moves the clock on; always true, so that it can stand in a condition."""
        self.time += seconds
        return True


class MetricSink:
    """Keeps the latest value of each metric, and counts the taker's rounds.

    Attributes:
        values: by metric.
        rounds: how many rounds have taken what there was to take.
    """

    def __init__(self) -> None:
        self.values: dict[Metric, float] = {}
        self.rounds = 0

    def observe(self, metric: Metric, value: float, shard: str | None) -> None:
        self.values[metric] = value
        self.rounds += metric == TAKEN_LEASES

    async def more_rounds(self, count: int = 3) -> None:
        """Waits until the taker has made ``count`` whole rounds from now on."""
        wanted = self.rounds + count + 1  # the round under way may have looked before now
        await until(lambda: self.rounds >= wanted)


async def tells_nothing(keeper: LeaseKeeper, sink: MetricSink, rounds: int = 3) -> None:
    """Asserts that the keeper reports no event in its next rounds, which ``sink`` counts."""
    telling = asyncio.create_task(keeper.next_event())
    await sink.more_rounds(rounds)
    assert not telling.done()
    telling.cancel()


@asynccontextmanager
async def running(keeper: LeaseKeeper) -> AsyncIterator[LeaseKeeper]:
    """Runs the keeper; leaves the leases as a crash does, unless the keeper is closed."""
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


def owners(table: LeaseTable) -> dict[str, str | None]:
    """Returns the owner of each lease, by shard."""
    return {lease.key: lease.owner for lease in table.scan()}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - it becomes true in DynamoDB
            await asyncio.sleep(0.005)
