"""What is away is waited for: told once and then once a minute, ended by a stop, not waited for when it is final."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from kainite.base import outage
from kainite.base.errors import LogCorruptError, LogUnavailableError, StoppedError
from kainite.base.outage import TELL_EVERY_S, OutageNotes, wait_out, wait_out_async
from kainite.base.retry import Backoff


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage, "AWS_BACKOFF", Backoff((0.001,)))


def test_a_lasting_outage_is_told_once_and_then_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    notes = OutageNotes("the table", lambda: now[0])
    for seconds in (0.0, 1.0, TELL_EVERY_S - 2.0, 1.0, 1.0, TELL_EVERY_S):
        now[0] += seconds
        notes(LogUnavailableError("away"), 3, 0.5)

    assert [record.getMessage() for record in caplog.records] == ["waiting"] * 3
    assert all(record.levelno == logging.WARNING for record in caplog.records)


async def test_it_asks_until_there_is_an_answer() -> None:
    calls: list[int] = []

    def act() -> str:
        calls.append(len(calls))
        if len(calls) < 5:
            raise LogUnavailableError("away")
        return "there"

    assert await wait_out(act, asyncio.Event(), "the table") == "there"
    assert len(calls) == 5


async def test_what_somebody_has_to_mend_is_raised_at_once() -> None:
    calls: list[int] = []

    async def act() -> None:
        calls.append(1)
        raise LogCorruptError("broken")

    with pytest.raises(LogCorruptError, match="broken"):
        await wait_out_async(act, asyncio.Event(), "the table")
    assert calls == [1]


async def test_a_stop_ends_the_wait_while_a_call_is_unanswered() -> None:
    stop, answered = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def silent() -> None:
        loop.call_soon_threadsafe(stop.set)
        answered.wait(60)

    with pytest.raises(StoppedError, match="stopped while waiting for the table"):
        await wait_out(silent, stop, "the table")
    assert not answered.is_set()
    answered.set()


async def test_a_stop_ends_the_wait_between_two_calls() -> None:
    stop, calls = asyncio.Event(), 0

    def away() -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            loop.call_soon_threadsafe(stop.set)
        raise LogUnavailableError("away")

    loop = asyncio.get_running_loop()
    with pytest.raises(StoppedError):
        await wait_out(away, stop, "the table")
