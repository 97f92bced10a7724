"""The log that requests go to: made again when a log leaves, and cut off only where an owner lives elsewhere."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kainite.base.errors import LogFencedError, LogRequestError, LogUnavailableError
from kainite.log.client import LogClient
from kainite.peers.sharing.present_log import PresentLog


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def a_log() -> LogClient:
    return cast(LogClient, object())


@pytest.mark.parametrize("error", [LogFencedError("x"), LogUnavailableError("x")])
async def test_a_request_that_a_log_cannot_finish_is_made_to_the_next_one(error: Exception) -> None:
    present, first, second = PresentLog(Clock(), 1.0), a_log(), a_log()
    asked: list[Any] = []

    async def request(log: LogClient) -> int:
        asked.append(log)
        if log is first:
            raise error
        return 7

    present.put(first)
    asking = asyncio.create_task(present.ask(request))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not present.is_reached
    present.put(second)
    assert await asking == 7
    assert asked == [first, second]


async def test_a_request_that_is_refused_is_not_made_again() -> None:
    async def refuse(log: LogClient) -> None:
        raise LogRequestError("no")

    present = PresentLog(Clock(), 1.0)
    present.put(a_log())
    with pytest.raises(LogRequestError):
        await present.ask(refuse)
    assert present.is_reached


def test_only_the_log_that_stands_there_is_taken_away() -> None:
    present, log = PresentLog(Clock(), 1.0), a_log()
    present.put(log)
    present.drop(a_log())
    assert present.is_reached
    present.drop(log)
    assert not present.is_reached


def test_who_reaches_no_living_owner_for_two_leases_is_cut_off() -> None:
    clock = Clock()
    present = PresentLog(clock, 10.0)
    present.held_elsewhere = True
    clock.now += 19.9
    assert not present.is_cut_off
    clock.now += 0.1
    assert present.is_cut_off
    present.held_elsewhere = False
    assert not present.is_cut_off
    log = a_log()
    present.put(log)
    clock.now += 3.0
    assert (present.settled_for, present.is_cut_off) == (3.0, False)
    present.drop(log)
    assert present.settled_for == 0.0
