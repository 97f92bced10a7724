"""A client's connection to the log's owner: connects, greets, sends, and waits for messages.

An owner that is silent is asked for its mark each PING_S; one that says nothing to that either is taken for gone: its
host may have gone without a word. While the program takes no messages, nothing is asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Final

from kainite.base.address import Address
from kainite.base.errors import LogRequestError, LogUnavailableError
from kainite.log.format.entry import ReqId
from kainite.peers.connection import Connection, State
from kainite.peers.introduction import Introduction
from kainite.peers.wire.frames import HEADER_SIZE, MAX_BODY
from kainite.peers.wire.hello import Hello, encode_hello
from kainite.peers.wire.layouts import Message
from kainite.peers.wire.messages import HighWaterMarkRequest

CONNECT_S: Final = 5.0
PING_S: Final = 5.0
SILENT_PINGS: Final = 3
_CHUNK: Final = 256 * 1024
_VERSIONS: Final = range(5)


class Link:
    """A greeted connection; made by :func:`linked`.

    Args:
        reader, writer: its socket.
        ping: what to ask a silent owner with.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ping: ReqId) -> None:
        self._reader = reader
        self._writer = writer
        self._ping = ping
        self._clock = asyncio.get_running_loop().time
        self._connection = Connection(_VERSIONS, self._clock())

    async def greet(self, introduction: Introduction) -> None:
        """Exchanges Hellos.

        Raises:
            LogError: the owner is not reached, or speaks no version that this side speaks.
        """
        self._writer.write(encode_hello(Hello(tuple(_VERSIONS), introduction.as_message())))
        while self._connection.state is not State.OPEN:
            self._connection.receive(await self._bytes(), self._clock())
            assert self._connection.next_message(self._clock()) is None, "an owner speaks first after a mount"

    async def next(self) -> Message:
        """Waits for the owner's next message.

        Raises:
            LogUnavailableError: the connection has ended, or the owner is silent.
            LogProtocolError: the owner says what it must not.
        """
        unanswered = 0
        while (received := self._connection.next_message(self._clock())) is None:
            try:
                async with asyncio.timeout(PING_S):
                    data = await self._bytes()
            except TimeoutError:
                unanswered += 1
                if unanswered > SILENT_PINGS:
                    raise LogUnavailableError(f"the log's owner was silent for {unanswered * PING_S:g} s") from None
                self.send(HighWaterMarkRequest(self._ping))
            else:
                self._connection.receive(data, self._clock())
                unanswered = 0
        return received.message

    def send(self, message: Message) -> None:
        """Sends a message, or keeps it until the owner takes it (:meth:`drained`); raises as :meth:`encode`."""
        self.send_frame(self.encode(message))

    def encode(self, message: Message) -> bytes:
        """Returns a message as a frame.

        Raises:
            LogRequestError: it is larger than an owner takes, or the version that the owner speaks cannot say it.
        """
        frame = self._connection.encode(message)
        if len(frame) > MAX_BODY + HEADER_SIZE:
            raise LogRequestError(
                f"a transaction of {len(frame)} bytes is larger than the log's owner takes ({MAX_BODY}): split it"
            )
        return frame

    def send_frame(self, frame: bytes) -> None:
        """Sends what :meth:`encode` gave."""
        self._writer.write(frame)

    async def drained(self) -> None:
        """Waits until the owner has taken most of what was sent; raises LogUnavailableError when it is gone."""
        try:
            await self._writer.drain()
        except OSError as error:
            raise LogUnavailableError(f"the log's owner is gone: {error}") from error

    async def _bytes(self) -> bytes:
        try:
            data = await self._reader.read(_CHUNK)
        except OSError as error:
            raise LogUnavailableError(f"the log's owner is gone: {error}") from error
        if not data:
            raise LogUnavailableError("the log's owner has closed the connection")
        return data


@contextlib.asynccontextmanager
async def linked(
    address: Address, tls: ssl.SSLContext | None, introduction: Introduction, ping: ReqId
) -> AsyncIterator[Link]:
    """Connects and greets; closes the connection in the end.

    Args:
        address: where the owner listens.
        tls: this side of TLS; None: nothing is encrypted.
        introduction: who this program is.
        ping: what to ask a silent owner with.

    Raises:
        LogUnavailableError: the owner is not reached.
        LogProtocolError: it speaks something else.
        LogRequestError: a secret would leave the host without TLS.
    """
    if introduction.secret and tls is None and not address.is_loopback:
        raise LogRequestError(f"a secret is not sent to {address} without TLS: set logTrustFile")
    try:
        async with asyncio.timeout(CONNECT_S):
            reader, writer = await asyncio.open_connection(address.host, address.port, ssl=tls)
    except (OSError, TimeoutError) as error:
        raise LogUnavailableError(f"the log's owner is not reached at {address}: {error or 'timed out'}") from error
    link = Link(reader, writer, ping)
    try:
        try:
            async with asyncio.timeout(CONNECT_S):
                await link.greet(introduction)
        except TimeoutError as error:
            raise LogUnavailableError(f"the log's owner at {address} says no Hello") from error
        yield link
    finally:
        writer.transport.abort()
