"""A member at the log's owner: takes the member's requests, and asks how far its shards are read.

A member's unanswered appends may take twice the credit and one frame at the owner. The credit counts compressed bytes,
so the session decodes an append only when the log has room for it: at most one decoded append a connection waits for
room. An append that the log has already may therefore wait for room before the owner recognises it.

A member appends only for shards whose leases it holds (:mod:`kainite.peers.sharing.lease_holders`), and only behind the
position that the log has of the shard (:meth:`~kainite.owner.owner.LogOwner.append`).

Appends are decoded one at a time, in the order in which they came: an append may use a scheme that one before it has
brought, and a large append is decoded on a thread. What ends the connection (the member is gone, or breaks the
protocol; the owner ends) gives up the appends that are not queued yet; queued appends become durable or not, without an
answer.

A report of the reading (:class:`~kainite.log.client.ReadingReport`) has ages. The owner does not know for how long the
report was under way; the member wrote the report after the owner's question, so the owner adds the time since the
question to each age. A report that was held back for an hour therefore tells of the state an hour ago, whatever the
clocks of the two hosts say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from kainite.base.errors import LogAppendError, LogProtocolError, LogRequestError
from kainite.base.waiting import wait_until_set
from kainite.log.client import ReadingReport
from kainite.owner.owner import LogOwner
from kainite.peers.fragments import decode_fragments
from kainite.peers.messages import (
    MAX_NUMBER,
    AppendBroken,
    Appended,
    BeginAnswer,
    BeginRequest,
    BeginStream,
    Join,
    Joined,
    Message,
    PositionAnswer,
    PositionRequest,
    ReadingAnswer,
    ReadingRequest,
    RequestRefused,
    SentPosition,
    ShardAppend,
)
from kainite.peers.service import Peer
from kainite.peers.sharing.lease_holders import HolderCheck
from kainite.uow.fragment import Fragment
from kainite.uow.scheme import Scheme

T = TypeVar("T")

CREDIT: Final = 8 * 2**20
"""How many bytes of unanswered appends a member may have; one append of any size is always allowed."""

ASK_EVERY_S: Final = 1.0
"""Seconds between two questions how far the shards are read; one may come between while a unit waits for the answer."""

OFF_LOOP_BYTES: Final = 64 * 1024
"""From so many bytes on, an append is decoded on a thread."""

QUESTIONS_KEPT: Final = 60
"""How many of the latest questions a member may still answer."""


class MemberSession:
    """One member's connection, once the member has joined.

    Args:
        join: the member's first message, which names the member.
        owner: the log's owner.
        peer: the member.
        clock: returns seconds since boot.
        holders: tells who holds the shards' leases.
    """

    def __init__(
        self, join: Join, owner: LogOwner, peer: Peer[Message], clock: Callable[[], float], holders: HolderCheck
    ) -> None:
        self.join = join
        self._owner = owner
        self._peer = peer
        self._clock = clock
        self._holders = holders
        self._schemes: dict[str, Scheme] = {}
        self._decoding = asyncio.Lock()
        self.unanswered = 0
        """The bytes of the member's appends that are not answered yet."""
        self._asked: dict[int, float] = {}
        self._questions = 0
        self._ask_now = asyncio.Event()
        self._awaited = False

    async def run(self) -> None:
        """Tells the member that it may ask, then asks it how far its shards are read, until the connection ends."""
        await self._peer.send(Joined(self._owner.generation, 0, CREDIT))
        with self._owner.asking(self._ask_soon):
            while True:
                await self._ask()
                self._ask_now.clear()
                await wait_until_set(self._ask_now, ASK_EVERY_S)

    async def take(self, message: Message) -> Coroutine[Any, Any, None] | None:
        """Takes a message of the member; returns the rest of the work for it, or None.

        Raises:
            LogProtocolError: the protocol has no such message from a member.
        """
        match message:
            case ShardAppend():
                self._count(message.size)
                return self._append(message)
            case PositionRequest():
                return self._position(message)
            case BeginRequest() | BeginStream():
                return self._begin(message)
            case ReadingAnswer():
                self._report(message)
                return None
        raise LogProtocolError(f"a member sent {type(message).__name__}")

    def _count(self, size: int) -> None:
        if self.unanswered > 2 * CREDIT:
            raise LogProtocolError(f"a member has {self.unanswered} bytes of appends unanswered, of at most {CREDIT}")
        self.unanswered += size

    async def _append(self, message: ShardAppend) -> None:
        owner, number = self._owner, message.number
        async with self._decoding:
            await owner.room()
            fragments = await self._decoded(message)
        first, last = message.first.position, message.last.position
        after = None if message.after is None else message.after.position
        try:
            await self._holders.check(message.shard, self.join.worker)
            await owner.append(message.shard, first, last, fragments, after)
        except LogRequestError as error:
            answer: Message = RequestRefused(owner.generation, number, str(error))
        except LogAppendError as error:
            answer = AppendBroken(owner.generation, number, str(error))
        else:
            answer = Appended(owner.generation, number)
        await self._peer.send(answer)
        self.unanswered -= message.size

    async def _decoded(self, message: ShardAppend) -> list[Fragment]:
        decode = partial(decode_fragments, message.fragments, message.payload, dict(self._schemes))
        fragments, schemes = await asyncio.to_thread(decode) if message.size >= OFF_LOOP_BYTES else decode()
        self._schemes.update(schemes)
        return fragments

    async def _position(self, request: PositionRequest) -> None:
        position = await self._owner.position(request.shard)
        place = None if position is None else SentPosition.of(position)
        await self._peer.send(PositionAnswer(self._owner.generation, request.number, place))

    async def _begin(self, request: BeginRequest | BeginStream) -> None:
        stream = request.stream if isinstance(request, BeginStream) else ""
        begun_ms = await self._owner.begin(request.at_ms, stream)
        await self._peer.send(BeginAnswer(self._owner.generation, request.number, begun_ms))

    def _ask_soon(self) -> None:
        """Asks at once, unless an answer is under way: a slow member is not asked more often."""
        if not self._asked:
            self._awaited = True
            self._ask_now.set()

    async def _ask(self) -> None:
        self._questions = self._questions % MAX_NUMBER + 1
        self._asked[self._questions] = self._clock()
        for old in list(self._asked)[:-QUESTIONS_KEPT]:
            del self._asked[old]
        backlog, hold_ms = str(self._owner.backlog() or ""), self._owner.hold_ms
        awaited, self._awaited = self._awaited, False
        await self._peer.send(ReadingRequest(self._owner.generation, self._questions, backlog, hold_ms, awaited))

    def _report(self, answer: ReadingAnswer) -> None:
        asked = self._asked.pop(answer.number, None)
        if asked is not None and answer.shards:
            its = self._of_its_shards
            told = its(answer.read), its(answer.tips), its(answer.arrived)
            self._owner.report(ReadingReport(answer.shards, *told, answer.waiting).aged(self._clock() - asked))

    def _of_its_shards(self, told: Mapping[str, T]) -> dict[str, T]:
        """Returns what a member tells of shards whose leases it is known to hold; it tells of the others again."""
        worker = self.join.worker
        return {shard: value for shard, value in told.items() if self._holders.is_known(shard, worker)}
