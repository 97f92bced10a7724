"""The owner's tasks: none dies unnoticed, and the first error is the owner's."""

from __future__ import annotations

import asyncio

import pytest

from kainite.base.errors import KainiteError, LogFencedError, LogUnavailableError
from kainite.observe.meter import Meter
from kainite.observe.metric import LOG_UPKEEP_FAILURES
from kainite.owner.owner_tasks import OwnerTasks
from support.metric_sums import Sums

STOPPED = LogUnavailableError("the owner has stopped")


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_an_error_of_a_task_is_the_owners_and_later_ones_are_ignored() -> None:
    told: list[KainiteError] = []
    tasks = OwnerTasks(told.append)
    fenced = LogFencedError("overtaken")

    async def fail() -> None:
        raise fenced

    tasks.start(for_ever)
    tasks.start(fail)
    assert await asyncio.wait_for(tasks.failed(), 1) is fenced
    assert await tasks.end(STOPPED) == []
    assert told == [fenced]


async def test_an_owner_that_went_on_fails_with_the_reason_of_its_end() -> None:
    told: list[KainiteError] = []
    tasks = OwnerTasks(told.append)
    tasks.start(for_ever)  # ended before it has begun
    assert await tasks.end(STOPPED) == []
    assert told == [STOPPED]
    assert await tasks.failed() is STOPPED


async def test_what_no_task_should_raise_is_returned() -> None:
    told: list[KainiteError] = []
    tasks = OwnerTasks(told.append)
    foreseen_by_nobody = ZeroDivisionError("why")

    async def fail() -> None:
        raise foreseen_by_nobody

    tasks.start(fail)
    assert "ZeroDivisionError" in str(await asyncio.wait_for(tasks.failed(), 1))
    assert await tasks.end(STOPPED) == [foreseen_by_nobody]


async def test_work_is_repeated_also_after_the_store_did_not_answer(caplog: pytest.LogCaptureFixture) -> None:
    sums = Sums()
    tasks = OwnerTasks(lambda _: None, Meter(sums))
    answers = iter([None, LogUnavailableError("throttled"), None, LogFencedError("overtaken")])

    async def work() -> None:
        if (answer := next(answers)) is not None:
            raise answer

    tasks.repeat(work, "work put off", 0.0)
    assert isinstance(await asyncio.wait_for(tasks.failed(), 1), LogFencedError)
    assert caplog.text.count("work put off") == 1
    assert sums.values[LOG_UPKEEP_FAILURES] == 1
    await tasks.end(STOPPED)
