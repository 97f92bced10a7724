"""The server's shell on real sockets: how many peers it takes, and how it stops."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from kainite.base.errors import SettingsError
from kainite.peers import server as server_module
from kainite.peers.server import serving
from kainite.waltz.wire.messages import (
    FlushRequest,
    FlushResponse,
)
from support.doors import EVERYBODY
from support.served_peers import (
    HERE,
    REQ,
    Answers,
    answers_well,
    client_of,
)
from support.waiting import until


async def test_a_peer_is_answered_and_the_service_hears_that_it_left() -> None:
    service = Answers()
    async with serving(service, HERE, door=EVERYBODY) as server:
        await answers_well(server)
        assert service.taken == [FlushRequest(REQ)]
    assert len(service.peers) == 1


async def test_connections_without_a_hello_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MOST_GREETING", 3)
    async with serving(Answers(), HERE, door=EVERYBODY) as server, contextlib.AsyncExitStack() as stack:
        flood = [await stack.enter_async_context(client_of(server)) for _ in range(10)]
        await answers_well(server)
        assert await flood[0].is_cut()


async def test_beyond_the_most_peers_a_connection_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MOST_PEERS", 1)
    async with serving(Answers(), HERE, door=EVERYBODY) as server:
        async with client_of(server) as client:
            await client.greet()
            await until(lambda: server.peers == 1)
            async with client_of(server) as other:
                await other.greet()
                assert await other.is_cut()
        await until(lambda: server.peers == 0)
        await answers_well(server)


async def test_a_stop_sends_the_replies_under_way_and_then_closes() -> None:
    service = Answers()
    service.go.clear()
    async with contextlib.AsyncExitStack() as stack:
        async with serving(service, HERE, door=EVERYBODY) as server:
            client = await stack.enter_async_context(client_of(server))
            await client.greet()
            client.ask(FlushRequest(REQ))
            await until(lambda: bool(service.taken))
            asyncio.get_running_loop().call_later(0.05, service.go.set)
        assert await client.message() == FlushResponse(REQ, 7)
        assert await client.is_cut()


async def test_an_address_in_use_is_told() -> None:
    async with serving(Answers(), HERE, door=EVERYBODY) as server:
        said = r"logListen: cannot listen on 127\.0\.0\.1:\d+: .* need a port each"
        with pytest.raises(SettingsError, match=said):
            async with serving(Answers(), server.address, door=EVERYBODY):
                pass
