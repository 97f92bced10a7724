"""The connecting side's shell: connects, says Hello, then sends messages and waits for them.

=======================================  ======================================================================
what happens                             the caller is told
=======================================  ======================================================================
nobody listens                           ConnectionRefusedError: evidence that the peer's process is gone
the connection is not made in time       another OSError; no evidence
the connection breaks, or the peer       LogUnavailableError
closes it or is silent for too long
the peer refuses the Hello, or sends a   LogProtocolError
message that the protocol forbids
=======================================  ======================================================================

Nothing is read from the socket while the caller takes no messages, so a peer that floods waits. A peer whose protocol
sends nothing of its own accord can be asked while it is silent (:class:`Silence`).
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, Generic

from kainite.base.errors import LogProtocolError, LogUnavailableError
from kainite.base.time_limit import time_limit_at
from kainite.peers import network
from kainite.peers.connection.codec import Codec, M
from kainite.peers.connection.core import Connection, ConnectionState, Limits
from kainite.peers.connection.introduction import Introduction
from kainite.peers.network import Reachable

CHUNK: Final = 256 * 1024
"""Most bytes that are read from a connection at once."""


@dataclass(frozen=True, slots=True)
class Silence(Generic[M]):
    """How a silent peer is asked whether it is alive.

    Attributes:
        question: a message that every live peer answers.
        every: seconds of silence after which the question is sent, and sent again.
    """

    question: M
    every: float


class ClientLink(Generic[M]):
    """A connection whose Hellos are exchanged; made by :func:`linked`.

    Args:
        reader, writer: the streams of the connection's socket.
        connection: the connection's state.
        silence: how a silent peer is asked whether it is alive; None means that it is not asked.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        connection: Connection[M],
        silence: Silence[M] | None = None,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._connection = connection
        self._silence = silence
        self._clock = asyncio.get_running_loop().time

    async def greet(self) -> None:
        """Exchanges Hellos; raises as :meth:`next`."""
        while self._connection.state is not ConnectionState.OPEN:
            await self._receive(self._connection.deadline)
            if self._connection.next_message(self._clock()) is not None:
                raise LogProtocolError("the peer said more than its Hello before it was asked anything")
            self.flush()

    async def next(self) -> M:
        """Waits for the peer's next message.

        Raises:
            LogUnavailableError: the connection broke, or the peer has closed it or is silent for too long.
            LogProtocolError: the peer sends a message that the protocol forbids.
        """
        while (received := self._connection.next_message(self._clock())) is None:
            while not await self._receive(self._ask_at()):
                if self._silence is not None:
                    self.send(self._silence.question)
        return received.message

    def send(self, *messages: M) -> None:
        """Sends messages, or keeps them until the peer takes them (:meth:`drained`).

        Raises:
            LogRequestError: a message is larger than the peer allows, or the version in use has no form for it.
        """
        for message in messages:
            self._connection.send(message)
        self.flush()

    def say_alive(self) -> None:
        """Tells the peer that this side is alive."""
        self._connection.keep_alive()
        self.flush()

    async def drained(self) -> None:
        """Waits until the peer has taken most of what was sent.

        Raises:
            LogUnavailableError: the connection broke.
        """
        try:
            await self._writer.drain()
        except OSError as error:
            raise LogUnavailableError(f"the log's owner is gone: {error}") from error

    def flush(self) -> None:
        if data := self._connection.to_send():
            self._writer.write(data)

    def close(self) -> None:
        """Ends the connection: :meth:`next` then raises that the connection is closed."""
        self._writer.close()

    def _ask_at(self) -> float:
        """Returns the time at which a peer that stays silent is asked, or the connection given up."""
        deadline = self._connection.deadline
        return deadline if self._silence is None else min(deadline, self._clock() + self._silence.every)

    async def _receive(self, until: float) -> bool:
        """Waits for bytes until the time ``until``; returns whether bytes came.

        Raises:
            LogUnavailableError: the peer has closed the connection, or takes too long.
        """
        try:
            async with time_limit_at(until):
                data = await self._reader.read(CHUNK)
        except TimeoutError:
            # In this order: a TimeoutError is an OSError.
            if (why := self._connection.overdue(self._clock())) is not None:
                raise LogUnavailableError(f"the log's owner takes too long: {why}") from None
            return False
        except OSError as error:
            raise LogUnavailableError(f"the log's owner is gone: {error}") from error
        if not data:
            raise LogUnavailableError("the log's owner has closed the connection")
        self._connection.receive(data, self._clock())
        return True


@contextlib.asynccontextmanager
async def linked(
    codec: Codec[M],
    address: Reachable,
    introduction: Introduction,
    *,
    tls: ssl.SSLContext | None = None,
    limits: Limits | None = None,
    silence: Silence[M] | None = None,
) -> AsyncIterator[ClientLink[M]]:
    """Connects and exchanges Hellos; closes the connection in the end.

    Args:
        codec: encodes and decodes the protocol's messages.
        address: where the peer listens.
        introduction: as whom this process connects.
        tls: this side's TLS context; None means that nothing is encrypted.
        limits: bounds on the peer's messages and times.
        silence: how a silent peer is asked whether it is alive; None means that it is not asked.

    Raises:
        ConnectionRefusedError: nobody listens there.
        OSError: the connection cannot be made.
        LogUnavailableError: the peer closes the connection, or takes too long.
        LogProtocolError: the peer speaks another protocol or no common version.
    """
    reader, writer = await (network.connect(address, tls) if tls else network.connect(address))
    now = asyncio.get_running_loop().time()
    connection = Connection(codec, introduction, now, limits)
    link = ClientLink(reader, writer, connection, silence)
    try:
        await link.greet()
        yield link
    finally:
        await network.hang_up(writer)
