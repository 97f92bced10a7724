"""A server that ends closes each connection, in whichever turn of the loop the connection was accepted."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, TypeAlias

import pytest

from kainite.base.address import Address
from kainite.base.end_listening import end_listening
from kainite.observe import http_endpoint
from kainite.peers.server import serving
from kainite.waltz.service import Applications
from support.application_world import Proxy
from support.doors import EVERYBODY
from support.leftovers import left_open
from support.relays import Relay

TURNS = 10

Running: TypeAlias = Callable[[], AbstractAsyncContextManager[int]]


class _Closing(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


@asynccontextmanager
async def _plain() -> AsyncIterator[int]:
    server = await asyncio.get_running_loop().create_server(_Closing, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    await end_listening(server)


@asynccontextmanager
async def _of_peers() -> AsyncIterator[int]:
    async with serving(Applications(), Address("127.0.0.1", 0), door=EVERYBODY) as server:
        yield server.address.port


@asynccontextmanager
async def _of_pages() -> AsyncIterator[int]:
    async with http_endpoint.serving({}, "127.0.0.1", 0) as port:
        yield port


@asynccontextmanager
async def _of_a_tests_proxy() -> AsyncIterator[int]:
    async with Proxy(Address("127.0.0.1", 1)).running() as proxy:
        yield proxy.address.port


@asynccontextmanager
async def _of_a_tests_relay() -> AsyncIterator[int]:
    relay = Relay(lambda: asyncio.open_connection("127.0.0.1", 1))
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    await end_listening(server)
    await relay.close()


async def _knock(running: Running, turns: int) -> None:
    """Connects, lets the loop turn so often, and ends the server."""
    async with running() as port:
        with socket.socket() as client:
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", port))
            for _ in range(turns):
                await asyncio.sleep(0)


@pytest.mark.parametrize("running", [_plain, _of_peers, _of_pages, _of_a_tests_proxy, _of_a_tests_relay])
def test_a_connection_is_closed_in_whichever_turn_it_came(running: Running) -> None:
    failures: list[dict[str, Any]] = []

    async def knocked(turns: int) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        await _knock(running, turns)

    for turns in range(TURNS):
        with asyncio.Runner() as runner:
            runner.run(knocked(turns))
        assert left_open() == [], turns
    assert failures == []


@pytest.mark.parametrize("running", [_of_peers, _of_pages])
async def test_a_second_cancellation_while_a_server_ends_leaves_no_connection(running: Running) -> None:
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def serve() -> None:
        async with running() as listening:
            port.set_result(listening)
            await asyncio.Event().wait()

    served = asyncio.create_task(serve())
    reader, writer = await asyncio.open_connection("127.0.0.1", await port)
    await asyncio.sleep(0)
    for _ in range(2):
        served.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await served
    async with asyncio.timeout(20):
        with suppress(ConnectionResetError):
            await reader.read()  # to the end, behind the greeting that a server of peers sends
    writer.close()
