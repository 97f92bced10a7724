"""Connections are made in time, or not at all; and closed whatever the other side does."""

from __future__ import annotations

import asyncio

import pytest

from kainite.base.address import Address
from kainite.peers import network
from support.ports import free_port


async def test_a_port_without_a_listener_refuses() -> None:
    with pytest.raises(ConnectionRefusedError):
        await network.connect(Address("127.0.0.1", free_port()))


async def test_what_was_sent_has_left_when_a_connection_is_closed() -> None:
    came: asyncio.Queue[bytes] = asyncio.Queue()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.put_nowait(await reader.read())
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        _, writer = await network.connect(Address("127.0.0.1", server.sockets[0].getsockname()[1]))
        writer.write(b"x" * 100_000)
        await network.hang_up(writer)
        assert await came.get() == b"x" * 100_000


async def test_a_peer_that_takes_nothing_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "CLOSE_LIMIT_S", 0.1)
    stop = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await stop.wait()
        writer.transport.abort()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        _, writer = await network.connect(Address("127.0.0.1", server.sockets[0].getsockname()[1]))
        writer.write(bytes(64 << 20))
        async with asyncio.timeout(20):
            await network.hang_up(writer)
        stop.set()


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "\0", "a..b"])
async def test_a_host_that_is_no_name_is_not_reached(host: str) -> None:
    with pytest.raises(OSError, match="is no host's name"):
        await network.connect(Address(host, 1))
