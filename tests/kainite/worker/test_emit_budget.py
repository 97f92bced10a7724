"""The memory of emitted lines: bounded over all shards, and no shard waits for ever."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from kainite.worker.emit_budget import EmitBudget

LIMIT = 10.0


@pytest.mark.parametrize("seed", range(20))
async def test_many_shards_that_emit_more_than_the_limit_all_end_their_calls(seed: int) -> None:
    """Gives each of 50 shards calls of up to the whole limit, so that all of them have a part, and none has all."""
    budget, chance, most = EmitBudget(100), random.Random(seed), 0
    largest = 120

    async def shard() -> None:
        nonlocal most
        share = budget.share()
        for _ in range(5):
            left = chance.randrange(largest)
            while left > 0:
                size = min(left, chance.randrange(1, 30))
                if (waiting := share.take(size)) is not None:
                    await waiting
                left -= size
                most = max(most, budget.held)
                await asyncio.sleep(0)
            share.give_back()

    async with asyncio.timeout(LIMIT):
        await asyncio.gather(*(shard() for _ in range(50)))
    assert budget.held == 0
    assert most <= 100 + largest


@dataclass
class Shard:
    """A shard that takes room when the test says so."""

    budget: EmitBudget
    taken: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.share = self.budget.share()

    def take(self, size: int) -> bool:
        """Returns whether there is room at once; otherwise waits in the background."""
        waiting = self.share.take(size)
        if waiting is not None:
            self.taken.append(asyncio.ensure_future(waiting))
        return waiting is None


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_is_overdrawn_and_the_longest_waiting_is_next() -> None:
    budget = EmitBudget(10)
    first, second, third = Shard(budget), Shard(budget), Shard(budget)
    assert first.take(9)
    assert second.take(9), "the first that finds no room is overdrawn"
    assert second.take(50)
    assert not first.take(2)
    assert not third.take(5)
    second.share.give_back()
    await turns()
    assert (first.taken[0].done(), third.taken[0].done()) == (True, False)
    assert budget.held == 11
    first.share.give_back()
    await turns()
    assert third.taken[0].done()
    third.share.give_back()
    assert budget.held == 0


async def test_who_is_cancelled_while_it_waits_holds_nothing() -> None:
    budget = EmitBudget(10)
    first, second, third = Shard(budget), Shard(budget), Shard(budget)
    assert first.take(20)
    assert not second.take(5)
    assert not third.take(5)
    await turns()
    second.taken[0].cancel()
    first.share.give_back()
    second.share.give_back()
    await turns()
    assert third.taken[0].done()
    assert budget.held == 5


async def test_a_child_that_hangs_does_not_keep_the_others_for_ever() -> None:
    budget = EmitBudget(10, patience=0.01)
    hanging, other = Shard(budget), Shard(budget)
    assert hanging.take(20)
    assert not other.take(5)
    async with asyncio.timeout(LIMIT):
        await other.taken[0]
    assert other.take(5), "it goes on to the end of its call"
    assert budget.held == 30


async def test_while_the_log_takes_nothing_only_one_shard_is_overdrawn() -> None:
    budget = EmitBudget(10, patience=0.01)
    appending, *others = (Shard(budget) for _ in range(8))
    assert appending.take(20)
    appending.share.appending = True
    for other in others:
        assert not other.take(20)
    done, _ = await asyncio.wait([other.taken[0] for other in others], timeout=0.3)
    assert (done, budget.held) == (set(), 20)
    for shard in (appending, *others):
        async with asyncio.timeout(LIMIT):
            await asyncio.gather(*shard.taken)
        assert budget.held == 20
        shard.share.appending = True
        shard.share.give_back()
        assert not shard.share.appending
    assert budget.held == 0


async def test_a_child_that_hangs_costs_one_calls_lines_and_not_those_of_all_that_wait() -> None:
    budget = EmitBudget(10, patience=0.3)  # so long that one turn of a loaded loop sees no two of them
    hanging, *others = (Shard(budget) for _ in range(8))
    assert hanging.take(20)
    for other in others:
        assert not other.take(20)
    waiting = [other.taken[0] for other in others]
    async with asyncio.timeout(LIMIT):
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert len(done) == 1
    next(other for other in others if other.taken[0] in done).share.appending = True
    await asyncio.wait([each for each in waiting if each not in done], timeout=1.0)
    assert budget.held == 40
    for each in waiting:
        each.cancel()
