"""Asking a process for its health: an answer, or the reason why there is none, in bounded time."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing

from kainite.observe.http_endpoint import HttpResponse, serving
from kainite.verdict import health_page
from kainite.verdict.facts import DaemonFacts
from kainite.verdict.health_page import ask_health


async def asked(body: bytes) -> DaemonFacts:
    async def page() -> HttpResponse:
        return HttpResponse(body, "application/json")

    async with serving({"/health": page}, "127.0.0.1", 0) as port:
        return await asyncio.to_thread(ask_health, "0.0.0.0", port)


async def test_the_answer_is_what_the_process_says() -> None:
    found = await asked(b'{"healthy": true}')
    assert found.answer == {"healthy": True}
    assert found.address.startswith("127.0.0.1:")


async def test_an_answer_of_another_form_is_none() -> None:
    assert (await asked(b"[1]")).error == "its answer is no /health page"
    assert (await asked(b"no JSON")).answer is None


def test_a_port_that_nobody_listens_on_is_told() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        found = ask_health("127.0.0.1", taken.getsockname()[1])
    assert found.answer is None
    assert "refused" in found.error


def test_a_process_that_stands_still_costs_the_limit_and_no_more(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(health_page, "LIMIT_S", 0.05)
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        assert "timed out" in ask_health("127.0.0.1", silent.getsockname()[1]).error
