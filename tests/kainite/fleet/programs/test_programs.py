"""All programs of one worker: by their duty's name; what is not there is left out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kainite.base.clock import boot_seconds
from kainite.fleet.model.records import Duty, Work
from kainite.fleet.programs.commands import HostCommands
from kainite.fleet.programs.programs import DutyPrograms
from kainite.fleet.steps.plan import ProgramPhase

LONG = 60.0


def duty(name: str, grace: float = 10.0) -> Duty:
    return Duty(name, Work(command=("sleep", "1000"), ready_after=LONG, stop_grace=grace))


@asynccontextmanager
async def programs(*duties: Duty) -> AsyncIterator[tuple[DutyPrograms, asyncio.Event]]:
    news = asyncio.Event()
    commands = HostCommands({each.name: each.work for each in duties}, frozenset(), None)
    found = DutyPrograms(commands, LONG, news.set)
    for each in duties:
        found.start(each, boot_seconds() + LONG)
    try:
        yield found, news
    finally:
        await found.kill_all("the test is over")


async def ended(found: DutyPrograms, news: asyncio.Event, name: str) -> None:
    async with asyncio.timeout(30):
        while found.states()[name].phase is not ProgramPhase.ENDED:
            await news.wait()
            news.clear()


async def test_without_programs_nothing_is_waited_for() -> None:
    async with programs() as (found, _):
        assert (bool(found), found.states(), found.next_ready(), found.longest_grace()) == (False, {}, None, 0.0)
        found.stop("missing")
        found.kill("missing", "why", failed=True)
        await found.forget("missing")
        await found.kill_all("why")


async def test_the_next_one_that_is_ready_and_the_longest_grace_count() -> None:
    async with programs(duty("a", 1.0), duty("b", 3.0)) as (found, _):
        assert found.longest_grace() == 3.0
        ready = found.next_ready()
        assert ready is not None
        assert 0 < ready <= LONG


async def test_one_is_killed_and_forgotten_when_it_has_ended() -> None:
    async with programs(duty("a"), duty("b")) as (found, news):
        await found.forget("a")
        assert set(found.states()) == {"a", "b"}, "it has not ended"
        found.kill("a", "an operator killed it", failed=True)
        await ended(found, news, "a")
        assert found.states()["a"].error.startswith("an operator killed it")
        await found.forget("a")
        assert set(found.states()) == {"b"}


async def test_one_is_stopped_and_the_others_go_on() -> None:
    async with programs(duty("a"), duty("b")) as (found, news):
        found.stop("a")
        await ended(found, news, "a")
        assert found.states()["b"].phase is ProgramPhase.STARTING


async def test_all_are_gone_when_they_were_killed() -> None:
    async with programs(duty("a"), duty("b")) as (found, _):
        await found.kill_all("the lease is over")
        assert not found
