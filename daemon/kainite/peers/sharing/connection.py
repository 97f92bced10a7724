"""A connection to the log's owner, as a :class:`~kainite.log.client.LogClient`.

The shell of :mod:`kainite.peers.sharing.conversation`: it reads and writes, and hands answers to those who wait.
Whatever ends the connection ends all waiting requests with LogUnavailableError; whether an append was carried out is
then unknown, and it is made again elsewhere.

An owner asks once a second how far the shards are read, so an owner that says nothing for :data:`SILENT_S` is taken for
gone: it is frozen, or the network is cut without a word.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Final

from kainite.base.errors import LogRequestError, LogUnavailableError
from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.peers.sharing import network
from kainite.peers.sharing.address import OwnerAddress
from kainite.peers.sharing.conversation import MAX_APPEND, Answered, Asked, Conversation, Opened
from kainite.peers.sharing.fragments import encode_fragments, payload_size
from kainite.uow.fragment import Fragment

SILENT_S: Final = 5.0
"""Seconds without a word of the owner after which it is taken for gone."""

OFF_LOOP_BYTES: Final = 256 * 1024
"""From so many bytes of deltas on, an append is compressed on a thread."""


class OwnerConnection:
    """An open connection; made by :func:`connected`.

    Args:
        conversation: what is said on it.
        reader, writer: its socket.
        reading: returns the latest report of this process, with ages as of now; None while there is none.
    """

    def __init__(
        self,
        conversation: Conversation,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        reading: Callable[[], ReadingReport | None],
    ) -> None:
        self.backlog = ""
        """Why the log takes no more from the shards, as the owner said last; empty while it does."""
        self._conversation = conversation
        self._reader = reader
        self._writer = writer
        self._reading = reading
        self._opened = asyncio.Event()
        self._ended: LogUnavailableError | None = None
        self._answers: dict[int, asyncio.Future[Answered]] = {}

    async def converse(self) -> None:
        """Reads until the connection ends, and raises why.

        Raises:
            LogUnavailableError: the peer does not own the log, has closed the connection, or says nothing.
            LogProtocolError: it does not speak the protocol.
            OSError: the connection broke.
        """
        try:
            while True:
                self._send()
                for heard in self._conversation.receive(await self._received()):
                    self._hear(heard)
        finally:
            self.end()

    async def opened(self) -> None:
        """Waits until the owner takes requests; for ever if the connection ends before."""
        await self._opened.wait()

    async def position(self, shard_id: str) -> Position | None:
        self._check()
        return (await self._answer(self._conversation.position(shard_id))).position

    async def append(
        self,
        shard_id: str,
        first: Position,
        last: Position,
        fragments: Sequence[Fragment],
        *,
        started_ms: int | None = None,
    ) -> None:
        self._check()
        encode = partial(encode_fragments, fragments, frozenset(self._conversation.schemes), started_ms)
        large = payload_size(fragments) >= OFF_LOOP_BYTES
        encoded = await asyncio.to_thread(encode) if large else encode()
        _check_length(shard_id, len(encoded[0]) + len(encoded[1]))
        self._check()
        answer = await self._answer(self._conversation.append(shard_id, first, last, *encoded))
        if answer.error is not None:
            raise answer.error

    def report(self, report: ReadingReport) -> None:
        """Does nothing: the owner asks."""

    def _hear(self, heard: Opened | Answered | Asked) -> None:
        match heard:
            case Opened():
                self._opened.set()
            case Answered(number=number):
                waiting = self._answers.pop(number, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(heard)
            case Asked(number, backlog):
                self.backlog = backlog
                self._conversation.reading(number, self._reading())

    async def _answer(self, number: int) -> Answered:
        waiting: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._answers[number] = waiting
        self._send()
        try:
            return await waiting
        finally:
            self._answers.pop(number, None)

    async def _received(self) -> bytes:
        try:
            async with asyncio.timeout(SILENT_S):
                data = await self._reader.read(network.CHUNK)
        except TimeoutError:
            raise LogUnavailableError(f"the log's owner has said nothing for {SILENT_S:g} s") from None
        if not data:
            raise LogUnavailableError("the log's owner has closed the connection")
        return data

    def _send(self) -> None:
        if data := self._conversation.to_send():
            self._writer.write(data)

    def _check(self) -> None:
        if self._ended is not None:
            raise self._ended

    def end(self) -> None:
        """Ends all waiting requests; no further one is made."""
        self._ended = LogUnavailableError("the connection to the log's owner has ended")
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(self._ended)
                waiting.exception()  # marks the error as handled: the caller may have been cancelled
        self._answers.clear()


def _check_length(shard: str, length: int) -> None:
    """Refuses an append whose frame the owner would not take: it would end the connection, with all other appends."""
    if length > MAX_APPEND:
        raise LogRequestError(
            f"shard {shard}: one call's units of work take {length} bytes on the way to the log's owner, of at most "
            f"{MAX_APPEND}: too long for one append; let the child take smaller batches (maxRecords)"
        )


@contextlib.asynccontextmanager
async def connected(
    address: OwnerAddress,
    conversation: Conversation,
    reading: Callable[[], ReadingReport | None],
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[OwnerConnection]:
    """Connects to an owner, over TLS if its context is given, and closes the connection at the end.

    Raises:
        ConnectionRefusedError: nobody listens there.
        OSError: the connection cannot be made.
    """
    reader, writer = await (network.connect(address, tls) if tls else network.connect(address))
    connection = OwnerConnection(conversation, reader, writer, reading)
    try:
        yield connection
    finally:
        connection.end()
        await network.hang_up(writer)
