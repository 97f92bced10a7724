"""The sockets of members: the one place where connections are made and taken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final, TypeAlias

from kainite.log.service.sharing.address import Address, of_listener

Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[None, None, None]]

CONNECT_LIMIT_S: Final = 5.0
"""Seconds in which a connection must be made."""

CLOSE_LIMIT_S: Final = 1.0
"""Seconds that a closed connection may take to send what it still has."""

CHUNK: Final = 256 * 1024
"""Most bytes that are read from a connection at once."""


class Listener:
    """A port that is open from :meth:`open` until :meth:`close`; each connection is served in a task of its own."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._closed = False

    async def open(self, host: str, port: int) -> Address:
        self._server = await asyncio.start_server(self._accept, host, port)
        return of_listener(host, self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Closes the port and all connections."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._closed:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        # Also for a task that is cancelled before it begins.
        task.add_done_callback(lambda _: writer.transport.abort())


async def listen(serve: Serve, host: str, port: int) -> tuple[Listener, Address]:
    """Opens a port; returns it with its address.

    Args:
        serve: serves a connection, and closes it at the end.
        host: the interface's address.
        port: 0 for any free one.

    Raises:
        OSError: the port cannot be opened.
    """
    listener = Listener(serve)
    return listener, await listener.open(host, port)


async def connect(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects to an address.

    Raises:
        ConnectionRefusedError: nobody listens there.
        OSError: the connection cannot be made, or not in time.
    """
    async with asyncio.timeout(CONNECT_LIMIT_S):
        return await asyncio.open_connection(address.host, address.port)


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Closes a connection; returns when its last bytes are sent, or soon."""
    writer.close()
    try:
        async with asyncio.timeout(CLOSE_LIMIT_S):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()
