"""Sockets of the connecting side: the one place where connections are made."""

from __future__ import annotations

import asyncio
import ssl
from typing import Final, Protocol

from kainite.base.time_limit import time_limit

CONNECT_LIMIT_S: Final = 5.0
"""Seconds in which a connection must be established."""

CLOSE_LIMIT_S: Final = 1.0
"""Seconds that a closed connection may take to send the bytes that wait."""


class Reachable(Protocol):
    """The address at which a listener is reached."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


async def connect(
    address: Reachable, tls: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects to an address, over TLS if a context is given.

    Raises:
        ConnectionRefusedError: nobody listens there.
        OSError: the connection cannot be made, or not in time.
    """
    try:
        async with time_limit(CONNECT_LIMIT_S):
            return await asyncio.open_connection(address.host, address.port, ssl=tls)
    except OSError:
        raise  # also a certificate that is not trusted, whose error is a ValueError as well
    except ValueError as error:  # the host is no name that can be looked up: whoever advertises it says what it wants
        raise OSError(f"{address.host!r} is no host's name: {error}") from error


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Closes a connection; returns when its last bytes are sent, or after a short time."""
    writer.close()
    try:
        async with time_limit(CLOSE_LIMIT_S):
            await writer.wait_closed()
    except (OSError, TimeoutError):
        writer.transport.abort()
