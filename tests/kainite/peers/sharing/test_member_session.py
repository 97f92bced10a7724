"""The owner's side of a connection: when the appends of a follower are decoded, and in which order."""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import replace
from typing import Any

import pytest

from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.peers.fragments import decode_fragments
from kainite.peers.sharing import member_session as session_module
from kainite.uow.fragment import Fragment
from kainite.uow.scheme import Scheme, TableScheme
from kainite.uow.touches import Touched
from support.log_builders import fragment
from support.log_members import LIMIT, members, units_of
from support.waiting import until

SCHEME = Scheme({"t": TableScheme("digest", ())})


class Appends:
    """Counts the appends that sessions have received and decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.received: list[int] = []
        self.decoded = 0
        self.two_received = threading.Event()
        monkeypatch.setattr(session_module.MemberSession, "_count", lambda _, size: self._receive(size))
        monkeypatch.setattr(session_module, "decode_fragments", self._decode)

    def _receive(self, size: int) -> None:
        self.received.append(size)
        if len(self.received) == 2:
            self.two_received.set()

    def _decode(self, metadata: bytes, payload: bytes, known: Any) -> Any:
        self.decoded += 1
        if threading.current_thread() is not threading.main_thread():
            self.two_received.wait(LIMIT)
        return decode_fragments(metadata, payload, known)


def signed(uow: str, keys: range) -> Fragment:
    touched = Touched(frozenset(keys), tables=("t",), scheme=SCHEME.id)
    return replace(fragment(uow, keys, count=len(keys)), touched=touched, scheme=SCHEME)


async def test_an_append_is_decoded_only_when_the_log_has_room_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    appends = Appends(monkeypatch)
    async with members(backlog_units=1) as all_:
        a, b = await all_.join("a"), await all_.join("b")
        await a.append("s9", Position(1), Position(1), [fragment("T", [1], count=1)])
        waiting = [
            asyncio.create_task(b.append(f"s{shard}", Position(1), Position(1), [fragment(f"T-{shard}", [1], count=1)]))
            for shard in range(3)
        ]
        await until(lambda: len(appends.received) == 3)
        assert await b.position("s9") == Position(1), "a question does not wait behind appends"
        assert appends.decoded == 0
        for task in waiting:
            task.cancel()


async def test_an_append_may_use_the_scheme_of_a_large_one_that_is_still_being_decoded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(session_module, "OFF_LOOP_BYTES", 1000)
    appends = Appends(monkeypatch)
    with caplog.at_level(logging.WARNING):
        async with members() as all_:
            await all_.join("a")
            b = await all_.join("b")
            large = asyncio.create_task(b.append("s0", Position(1), Position(1), [signed("LARGE", range(1000))]))
            small = asyncio.create_task(b.append("s1", Position(1), Position(1), [signed("SMALL", range(1))]))
            await asyncio.wait_for(asyncio.gather(large, small), LIMIT)
            assert appends.received[0] >= 1000 > appends.received[1]
            assert units_of(all_.store) == ["LARGE", "SMALL"]
    assert "log peer cut" not in [record.getMessage() for record in caplog.records]


async def test_a_client_is_asked_at_once_unless_its_answer_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "ASK_EVERY_S", 3600.0)
    reports: list[ReadingReport] = []
    answers = 0

    def reading() -> ReadingReport:
        nonlocal answers
        answers += 1
        return ReadingReport(frozenset({"s0"}), {})

    async with members() as all_:
        a, b = await all_.join("a"), await all_.join("b", reached=False)
        assert a.owner is not None
        monkeypatch.setattr(a.owner, "report", reports.append)
        b.reading = reading
        await asyncio.wait_for(b.reached(), LIMIT)
        await until(lambda: len(reports) == 1)
        readers = tuple(a.owner._reading._ending.readers)  # noqa: SLF001 - who is asked when a unit waits for the reading alone
        for asked in (1, 2):
            for ask in 3 * readers:
                ask()
            await until(lambda: len(reports) > asked)  # noqa: B023
            assert answers == len(reports) == 1 + asked
        assert tuple(a.owner._reading._ending.readers) == readers, "no connection was made anew"  # noqa: SLF001
