"""What comes through a shard is recognised, collected, or refused."""

from __future__ import annotations

import asyncio

import pytest

from kainite.base.errors import LogRequestError
from kainite.base.position import BEFORE_ALL, Position
from kainite.log.contract import LogStore
from kainite.log.state.loading import load_state
from kainite.settings import LogSettings, UowSettings
from support.faulty_store import FaultyStore
from support.log_builders import fragment
from support.next_append import append_next
from support.owned_log import owned_log, units_of
from support.waiting import until

SETTINGS = LogSettings(
    table="t", owner="a", enabled=True, lease=2.0, heartbeat=0.05, put_interval=0.0, poll=0.02, queue_bytes=1 << 20
)
UOW = UowSettings()
P = SETTINGS.partition
LIMIT = 10.0


def at(sequence: int) -> Position:
    return Position(sequence)


async def test_an_append_is_durable_when_it_returns(store: LogStore) -> None:
    async with owned_log(store, SETTINGS, UOW) as log:
        await append_next(log, "s0", at(1), at(5), [fragment("T", [1], count=1)])
        assert units_of(store) == ["T"]
        assert await log.position("s0") == at(5)


async def test_an_append_that_comes_again_is_recognised(store: LogStore) -> None:
    async with owned_log(store, SETTINGS, UOW) as log:
        for _ in range(2):
            await append_next(log, "s0", at(1), at(5), [fragment("T", [1])])
        await append_next(log, "s0", at(6), at(6), [fragment("T", count=1)])
    assert units_of(store) == ["T"]


async def test_an_append_that_comes_again_after_a_restart_is_recognised(store: LogStore) -> None:
    async with owned_log(store, SETTINGS, UOW) as log:
        await append_next(log, "s0", at(1), at(5), [fragment("T", [1])])
    async with owned_log(store, SETTINGS, UOW) as log:
        await append_next(log, "s0", at(1), at(5), [fragment("T", [1])])
        assert log.state.open["T"].count == 1


async def test_an_append_that_overlaps_is_refused(store: LogStore) -> None:
    async with owned_log(store, SETTINGS, UOW) as log:
        await append_next(log, "s0", at(1), at(5), [])
        with pytest.raises(LogRequestError, match="read on behind its position"):
            await append_next(log, "s0", at(4), at(8), [])


async def test_an_append_may_be_larger_than_an_item(store: LogStore) -> None:
    async with owned_log(store, SETTINGS, UOW) as log:
        await append_next(log, "s0", at(1), at(1), [fragment("T", range(20_000), count=20_000)])
    assert units_of(store) == ["T"]
    assert load_state(store, P).units[0].written == frozenset(range(20_000))


async def test_units_of_a_record_with_the_lowest_position_are_kept(store: LogStore) -> None:
    async with owned_log(store, SETTINGS, UOW) as log:
        await append_next(log, "s0", BEFORE_ALL, BEFORE_ALL, [fragment("T", [1], count=1)])
    assert units_of(store) == ["T"]


async def test_a_cancelled_append_is_recognised_when_it_comes_again(faulty: FaultyStore) -> None:
    async with owned_log(faulty, SETTINGS, UOW) as log:
        faulty.gate.clear()
        append = asyncio.create_task(log.append("s0", at(1), at(1), [fragment("T", [1], count=1)]))
        await until(lambda: faulty.waiting == 1)
        append.cancel()
        again = asyncio.create_task(log.append("s0", at(1), at(1), [fragment("T", [1], count=1)]))
        durable: list[int] = []
        again.add_done_callback(lambda _: durable.append(faulty.batches))
        faulty.gate.set()
        async with asyncio.timeout(LIMIT):
            await again
        assert durable == [1], "acknowledged before it is durable"
    assert units_of(faulty) == ["T"]
