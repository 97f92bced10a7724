"""The member's loop: actions are carried out in tasks, and what a task of an earlier epoch tells is not heard."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, cast

import pytest

from kainite.base.errors import LogCorruptError
from kainite.peers.address import OwnerAddress
from kainite.peers.sharing.member_loop import MemberLoop
from kainite.peers.sharing.membership import Cut, HeadSeen, Member, MemberState, NotMounted
from support.waiting import until

THERE = OwnerAddress("10.0.0.7", 7)


class Script:
    """Stands for HEAD, the owner and the connection."""

    def __init__(self) -> None:
        self.head = HeadSeen(0, free=True)
        self.owns = self.follows = 0
        self.error: Exception | None = None
        self.cut = asyncio.Event()

    async def look(self) -> HeadSeen:
        if self.error is not None:
            raise self.error
        return self.head

    async def own(self, gone: int | None, mounted: Callable[[], None]) -> NotMounted:
        self.owns += 1
        mounted()
        try:
            await asyncio.Event().wait()
        finally:
            self.owns -= 1
        return NotMounted()

    async def append_at(self, to: OwnerAddress, generation: int, welcomed: Callable[[], None]) -> Cut:
        self.follows += 1
        welcomed()
        try:
            await self.cut.wait()
        finally:
            self.follows -= 1
        return Cut()


@contextlib.asynccontextmanager
async def looping(script: Script) -> Any:
    part = cast(Any, script)
    loop = MemberLoop(Member(watch=0.01, wait=0.01, uniform=lambda: 0.0), part, part, part)
    running = asyncio.create_task(loop.run())
    try:
        yield loop, running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert (script.owns, script.follows) == (0, 0), "what was under way has ended"
        assert loop.state is MemberState.STOPPED


async def test_a_free_partition_is_owned() -> None:
    script = Script()
    async with looping(script) as (loop, _):
        await until(lambda: loop.state is MemberState.OWNING)
        assert script.owns == 1


async def test_an_owner_is_followed_and_left_when_head_names_another_one() -> None:
    script = Script()
    script.head = HeadSeen(3, False, THERE)
    async with looping(script) as (loop, _):
        await until(lambda: loop.state is MemberState.FOLLOWING)
        script.head = HeadSeen(4, free=True)
        await until(lambda: loop.state is MemberState.OWNING)
        assert (script.owns, script.follows) == (1, 0)


async def test_a_connection_that_ends_is_made_again() -> None:
    script = Script()
    script.head = HeadSeen(3, False, THERE)
    async with looping(script) as (loop, _):
        await until(lambda: loop.state is MemberState.FOLLOWING)
        script.cut.set()
        await until(lambda: loop.state is not MemberState.FOLLOWING)
        script.cut.clear()
        await until(lambda: loop.state is MemberState.FOLLOWING)


async def test_what_makes_the_log_unusable_ends_the_loop() -> None:
    script = Script()
    script.error = LogCorruptError("broken")
    async with looping(script) as (_, running):
        with pytest.raises(LogCorruptError):
            await running
