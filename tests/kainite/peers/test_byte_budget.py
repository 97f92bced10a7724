"""The budget of bytes for all peers: who waits, in which order, and that everything comes back."""

from __future__ import annotations

import asyncio

from kainite.peers.byte_budget import TINY, ByteBudget

MUCH = 10 * TINY


async def turns(*waiting: asyncio.Task[None]) -> list[bool]:
    for _ in range(5):
        await asyncio.sleep(0)
    return [task.done() for task in waiting]


async def test_long_messages_wait_their_turn_and_tiny_ones_never_do() -> None:
    budget = ByteBudget(MUCH)
    await budget.take(MUCH - TINY)
    large, small = (asyncio.create_task(budget.take(size)) for size in (MUCH - TINY, TINY + 1))
    assert await turns(large, small) == [False, False]
    await budget.take(TINY)
    budget.give(TINY)
    assert await turns(large, small) == [False, False]  # the small one is behind the large one
    budget.give(MUCH - TINY)
    assert await turns(large, small) == [True, False]
    budget.give(MUCH - TINY)
    assert await turns(small) == [True]
    budget.give(TINY + 1)
    assert budget.taken == 0


async def test_a_message_longer_than_the_budget_passes_alone() -> None:
    budget = ByteBudget(MUCH)
    await budget.take(2 * MUCH)
    other = asyncio.create_task(budget.take(2 * TINY))
    assert await turns(other) == [False]
    budget.give(2 * MUCH)
    assert await turns(other) == [True]


async def test_who_gives_up_waiting_takes_nothing_and_keeps_nobody_waiting() -> None:
    budget = ByteBudget(MUCH)
    await budget.take(MUCH - TINY)
    first, second = (asyncio.create_task(budget.take(size)) for size in (MUCH, TINY + 1))
    assert await turns(first, second) == [False, False]
    first.cancel()
    assert await turns(first, second) == [True, False]
    budget.give(MUCH - TINY)
    assert await turns(second) == [True]
    assert budget.taken == TINY + 1


async def test_a_turn_that_comes_as_it_is_given_up_is_given_back() -> None:
    budget = ByteBudget(MUCH)
    await budget.take(MUCH)
    first, second = (asyncio.create_task(budget.take(MUCH)) for _ in range(2))
    await turns(first, second)
    budget.give(MUCH)  # it is first's turn
    first.cancel()
    assert await turns(first, second) == [True, True]
    assert budget.taken == MUCH
    budget.give(MUCH)
    assert budget.taken == 0
