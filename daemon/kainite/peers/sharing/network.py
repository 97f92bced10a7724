"""The sockets of members: the one place where connections are made and taken."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Final

from kainite.base.errors import LogProtocolError
from kainite.peers.access import Access
from kainite.peers.server import Peer, Service, Stream, serving
from kainite.peers.sharing.address import OwnerAddress, of_listener
from kainite.peers.wire.layouts import Message
from kainite.peers.wire.shard_messages import VERSION

CONNECT_LIMIT_S: Final = 5.0
"""Seconds in which a connection must be made."""

CLOSE_LIMIT_S: Final = 1.0
"""Seconds that a closed connection may take to send what it still has."""

CHUNK: Final = 256 * 1024
"""Most bytes that are read from a connection at once."""


class Listener:
    """A port that is open until :meth:`close`; each connection of a member is served in a task of its own."""

    def __init__(self, stack: contextlib.AsyncExitStack) -> None:
        self._stack = stack

    async def close(self) -> None:
        """Closes the port and all connections."""
        await self._stack.aclose()


class _NoApplications:
    """Answers no version by messages: members alone connect."""

    versions: tuple[int, ...] = ()

    async def take(self, peer: Peer, message: Message) -> None:
        raise LogProtocolError("only members of the log are served here")

    def left(self, peer: Peer) -> None:
        pass


async def listen(
    serve: Stream, access: Access | None = None, applications: Service | None = None
) -> tuple[Listener, OwnerAddress]:
    """Opens a port; returns it with the address at which others reach it.

    Args:
        serve: serves a member's connection; at its end the connection is closed.
        access: where to listen, and who may connect; None: on any free port of loopback, everybody.
        applications: answers the versions of the protocol that applications speak; None: they are not served.

    Raises:
        SettingsError: the port cannot be opened.
    """
    access = access or Access()
    stack = contextlib.AsyncExitStack()
    server = await stack.enter_async_context(
        serving(
            applications or _NoApplications(),
            access.listen,
            tls=access.owner_tls,
            secrets=access.secrets,
            streams={VERSION: serve},
        )
    )
    reached = access.advertise or server.address
    return Listener(stack), of_listener(reached.host, reached.port or server.address.port)


async def connect(
    address: OwnerAddress, tls: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects to an address, over TLS if its context is given.

    Raises:
        ConnectionRefusedError: nobody listens there.
        OSError: the connection cannot be made, or not in time.
    """
    async with asyncio.timeout(CONNECT_LIMIT_S):
        return await asyncio.open_connection(address.host, address.port, ssl=tls)


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Closes a connection; returns when its last bytes are sent, or soon."""
    writer.close()
    try:
        async with asyncio.timeout(CLOSE_LIMIT_S):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()
