"""A connection to the log's owner, as a :class:`~kainite.log.client.LogClient`.

The connection gives the messages of a :class:`~kainite.peers.client.ClientLink` to the
:mod:`~kainite.peers.sharing.conversation`, sends the conversation's messages, and returns each answer to its request.
When the connection ends, all waiting requests end with LogUnavailableError. Whether the owner carried out an append is
then unknown, and the shard makes the append again at the next owner.

An owner asks once a second how far the shards are read, so an owner that says nothing for some seconds
(:data:`~kainite.peers.messages.OWNER_LIMITS`) counts as gone: its process is frozen, or the network drops all packets.
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
from kainite.peers.address import OwnerAddress
from kainite.peers.client import ClientLink, linked
from kainite.peers.connection.introduction import Introduction
from kainite.peers.fragments import encode_fragments, payload_size
from kainite.peers.messages import MAX_APPEND, OWNER_LIMITS, PEERS, Message
from kainite.peers.sharing.conversation import (
    Answered,
    Asked,
    MemberConversation,
    MemberHeard,
    MemberName,
    Opened,
    Places,
)
from kainite.uow.fragment import Fragment

OFF_LOOP_BYTES: Final = 256 * 1024
"""From so many bytes of deltas on, an append is compressed on a thread."""


class OwnerConnection:
    """An open connection; made by :func:`connected`.

    Args:
        conversation: decides what this side sends, and what the owner's messages mean.
        link: carries the messages.
        reading: returns the latest report of this process, with ages as of now; None while there is no report; is told
            whether a unit of work waits for it.
    """

    def __init__(
        self,
        conversation: MemberConversation,
        link: ClientLink[Message],
        reading: Callable[[bool], ReadingReport | None],
    ) -> None:
        self.backlog = ""
        """Why the log takes no more records, as the owner said last; empty while it takes them."""
        self.hold_ms: int | None = None
        """The arrival beyond which no shard is to be read further, as the owner said last; None while all may be."""
        self._conversation = conversation
        self._link = link
        self._reading = reading
        self._opened = asyncio.Event()
        self._ended: LogUnavailableError | None = None
        self._answers: dict[int, asyncio.Future[Answered]] = {}

    async def converse(self) -> None:
        """Reads messages until the connection ends, and raises the error that has ended it.

        Raises:
            LogUnavailableError: the peer does not own the log, has closed the connection, or says nothing.
            LogProtocolError: the peer does not speak the protocol.
        """
        try:
            while True:
                self._send()
                self._hear(self._conversation.take(await self._link.next()))
        finally:
            self.end()

    async def opened(self) -> None:
        """Waits until the owner takes requests; waits for ever if the connection ends before."""
        await self._opened.wait()

    async def position(self, shard_id: str) -> Position | None:
        self._check()
        return (await self._answer(self._conversation.position(shard_id))).position

    async def begin(self, at_ms: int, stream: str = "") -> int:
        self._check()
        return (await self._answer(self._conversation.begin(at_ms, stream))).begun_ms

    async def append(
        self,
        shard_id: str,
        first: Position,
        last: Position,
        fragments: Sequence[Fragment],
        after: Position | None = None,
    ) -> None:
        self._check()
        encode = partial(encode_fragments, fragments, frozenset(self._conversation.schemes))
        large = payload_size(fragments) >= OFF_LOOP_BYTES
        encoded = await asyncio.to_thread(encode) if large else encode()
        _check_length(shard_id, len(encoded[0]) + len(encoded[1]))
        self._check()
        answer = await self._answer(self._conversation.append(shard_id, Places(first, last, after), *encoded))
        if answer.error is not None:
            raise answer.error

    def report(self, report: ReadingReport) -> None:
        """Does nothing: the owner asks."""

    def _hear(self, heard: MemberHeard) -> None:
        match heard:
            case Opened():
                self._opened.set()
            case Answered(number=number):
                waiting = self._answers.pop(number, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(heard)
            case Asked(number, backlog, hold_ms, awaited):
                self.backlog, self.hold_ms = backlog, hold_ms
                self._conversation.reading(number, self._reading(awaited))

    async def _answer(self, number: int) -> Answered:
        waiting: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._answers[number] = waiting
        self._send()
        try:
            return await waiting
        finally:
            self._answers.pop(number, None)

    def _send(self) -> None:
        self._link.send(*self._conversation.to_send())

    def _check(self) -> None:
        if self._ended is not None:
            raise self._ended

    def end(self) -> None:
        """Ends all waiting requests, and refuses further ones."""
        self._ended = LogUnavailableError("the connection to the log's owner has ended")
        for waiting in self._answers.values():
            if not waiting.done():
                waiting.set_exception(self._ended)
                waiting.exception()  # marks the error as handled: the caller may have been cancelled
        self._answers.clear()


def _check_length(shard: str, length: int) -> None:
    """Refuses an append with too large a frame: the owner would end the connection, with all other appends."""
    if length > MAX_APPEND:
        raise LogRequestError(
            f"shard {shard}: one call's units of work take {length} bytes on the way to the log's owner, of at most "
            f"{MAX_APPEND}: too long for one append; let the child take smaller batches (maxRecords)"
        )


@contextlib.asynccontextmanager
async def connected(
    address: OwnerAddress,
    name: MemberName,
    generation: int,
    reading: Callable[[bool], ReadingReport | None],
    *,
    introduction: Introduction | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[OwnerConnection]:
    """Connects to an owner, and closes the connection at the end.

    Args:
        address: where the owner listens.
        name: this member's identity, and the log that it means.
        generation: the generation of the owner that HEAD named.
        reading: as :class:`OwnerConnection` takes it.
        introduction: the introduction in this process's Hello; None means its worker id.
        tls: this side's TLS context; None means that nothing is encrypted.

    Raises:
        ConnectionRefusedError: nobody listens there.
        OSError: the connection cannot be made.
        LogUnavailableError: the peer closes the connection, or says nothing.
        LogProtocolError: the peer does not speak the protocol.
    """
    introduction = introduction or Introduction(name.worker)
    async with linked(PEERS, address, introduction, tls=tls, limits=OWNER_LIMITS) as link:
        connection = OwnerConnection(MemberConversation(name, generation), link, reading)
        try:
            yield connection
        finally:
            connection.end()
