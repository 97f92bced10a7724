"""The client's side of a connection to the log's owner; no I/O, no clock.

=========  =============================================  ======================================================
phase      waits for                                      then
=========  =============================================  ======================================================
GREETING   the owner's Hello                              sends Join: JOINING
JOINING    Joined, as long as the owner loads its state   OPEN
OPEN       answers, and questions about the reading       OPEN
ENDED      nothing: the peer broke the protocol, or does  each further call raises
           not own the log (any more)
=========  =============================================  ======================================================

Appends are sent in the order in which they are given, while the bytes of those that are not answered stay within the
owner's credit; one append is always allowed. Other requests do not wait behind appends.

**What may go wrong, and why nothing is lost or doubled.** A shard's consumer makes one append at a time, and makes the
next one only when the one before is acknowledged. The owner (:mod:`kainite.owner.owner`) recognises an append by
the shard's position: wholly behind it, the append is known; wholly beyond it, the append is new; across it, the append
is refused. An append is atomic, so after a change of owners it is either known as a whole or new as a whole.

=================================================  ====================================================================
what happens                                       why nothing is lost or doubled
=================================================  ====================================================================
the reply is lost after the append became durable  the append is made again, to this or another owner, and recognised
an append comes twice (a copy on an old            the second one is recognised: by the folded state already, while
connection)                                        the first one is still queued
the owner changes while an append is made again    the old owner's put meets the fence, so at most one of the two
                                                   becomes durable before the other is looked at
a former owner goes on (it was frozen)             it acknowledges nothing that is not durable under its own
                                                   generation, and nothing can become so. It may tell an old position,
                                                   which is too low: records are then collected again and recognised
a former holder of the shard goes on and appends   what it appends beyond the position is what the present holder would
                                                   append for the same records. The holder's append is then
                                                   recognised, or refused as overlapping: it reads on behind it
an append that its consumer gave up arrives later  the same
an append waits for room while the shard's         a position may be told that the append passes later: the same
position is asked
an answer comes under another number               LogProtocolError, and the connection ends
=================================================  ====================================================================
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

from kainite.base.errors import KainiteError, LogProtocolError, LogRequestError, LogUnavailableError
from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.log.format.entry import ReqId
from kainite.peers.wire.frames import FrameDecoder
from kainite.peers.wire.hello import Hello, common_version, decode_hello, encode_hello
from kainite.peers.wire.layouts import Message
from kainite.peers.wire.shard_messages import (
    VERSION,
    Elsewhere,
    Join,
    Joined,
    PositionAnswer,
    PositionRequest,
    ReadingAnswer,
    ReadingRequest,
    ShardAppend,
    ShardAppended,
    ShardRefused,
)
from kainite.peers.wire.versions import decode_message, encode_message

MAX_FRAME: Final = 320 * 2**20
"""The longest message, bytes: a payload that compression does not shorten, and its metadata."""

MAX_APPEND: Final = MAX_FRAME - 64 * 2**10
"""Most bytes of an append's metadata and payload together; the rest of its frame are positions and names."""

MAX_NUMBER: Final = 2**31 - 1
"""Requests of a connection are numbered from 1 up to this, and then from 1 again."""


class Phase(Enum):
    GREETING = auto()
    JOINING = auto()
    OPEN = auto()
    ENDED = auto()


@dataclass(frozen=True, slots=True)
class Opened:
    """The owner takes requests."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A request is answered: a position, or nothing; or ``error``, why an append is refused."""

    number: int
    position: Position | None = None
    error: KainiteError | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The owner asks how far the shards are read, and tells why reading waits (empty: it does not)."""

    number: int
    backlog: str


Heard: TypeAlias = Opened | Answered | Asked


@dataclass(frozen=True, slots=True)
class _Queued:
    message: ShardAppend
    schemes: frozenset[str]


class Conversation:
    """One connection, from its beginning.

    Args:
        log: the log, as ``TABLE/PARTITION``.
        stream: the name of the stream that this process collects.
        worker, process: this process's worker id and identity, as text.
        generation: of the owner that HEAD named.
        introduction: what the Hello says of this process; empty: its worker id.
        identity: of the stream; empty where it is not known.
    """

    def __init__(
        self,
        log: str,
        stream: str,
        worker: str,
        process: str,
        generation: int,
        introduction: str = "",
        identity: str = "",
    ) -> None:
        self.phase = Phase.GREETING
        self.schemes: set[str] = set()
        """Ids of the schemes that were sent."""
        self._join = Join(self._id(0, generation), log, stream, worker, process, identity)
        self._generation = generation
        self._decoder = FrameDecoder(MAX_FRAME)
        self._out: list[bytes] = [encode_hello(Hello((VERSION,), introduction or worker))]
        self._number = 0
        self._credit = 0
        self._unanswered: dict[int, int] = {}  # requests and the bytes that each takes of the credit
        self._used = 0
        self._waiting: deque[_Queued] = deque()

    def to_send(self) -> bytes:
        """Returns what is to be sent, and forgets it."""
        out, self._out = b"".join(self._out), []
        return out

    def receive(self, data: bytes) -> list[Heard]:
        """Takes bytes; returns what they say.

        Raises:
            LogProtocolError: the peer does not speak the protocol.
            LogUnavailableError: the peer does not own the log.
        """
        heard: list[Heard] = []
        try:
            self._decoder.receive(data)
            while (frame := self._decoder.next_frame()) is not None:
                if self.phase is Phase.GREETING:
                    self._greeted(frame.body)
                elif frame.body:
                    heard += self._take(decode_message(VERSION, frame.body))
        except KainiteError:
            self.phase = Phase.ENDED
            raise
        return heard

    def append(
        self, shard: str, first: Position, last: Position, fragments: bytes, payload: bytes, schemes: frozenset[str]
    ) -> int:
        """Makes an append; returns its number.

        Args:
            shard, first, last: as in :meth:`~kainite.log.client.LogClient.append`.
            fragments, payload, schemes: of :func:`~kainite.peers.sharing.fragments.encode_fragments`.
        """
        number = self._next()
        message = ShardAppend(self._id(number), shard, first, last, fragments, payload)
        self._waiting.append(_Queued(message, schemes))
        self.schemes |= schemes  # it goes before every append that is made from now on
        self._send_waiting()
        return number

    def position(self, shard: str) -> int:
        """Asks for a shard's position; returns the question's number."""
        number = self._next()
        self._unanswered[number] = 0
        self._send(PositionRequest(self._id(number), shard))
        return number

    def reading(self, number: int, report: ReadingReport | None) -> None:
        """Answers the owner's question of that number."""
        told = report or ReadingReport(frozenset(), {})
        self._send(ReadingAnswer(self._id(number), told.shards, told.read, told.tips, told.arrived, told.started))

    def _greeted(self, body: bytes) -> None:
        hello = decode_hello(body)
        if common_version((VERSION,), hello.versions) is None:
            raise LogProtocolError(
                f"{hello.message or 'the peer'} does not speak version {VERSION} of the log's protocol"
            )
        self._decoder.expect_messages(VERSION)
        self.phase = Phase.JOINING
        self._send(self._join)

    def _take(self, message: Message) -> list[Heard]:
        if isinstance(message, Elsewhere):
            raise LogUnavailableError(f"the process does not own the log; {message.address or 'nobody'} does")
        if self.phase is Phase.JOINING:
            return self._joined(message)
        if message.req_id.generation != self._generation:
            raise LogProtocolError(f"a message of generation {message.req_id.generation}, not {self._generation}")
        number = message.req_id.sequence
        match message:
            case ReadingRequest(backlog=backlog):
                return [Asked(number, backlog)]
            case ShardAppended():
                return [self._answered(Answered(number))]
            case ShardRefused(cause=cause):
                return [self._answered(Answered(number, error=LogRequestError(cause)))]
            case PositionAnswer(position=position):
                return [self._answered(Answered(number, position))]
        raise LogProtocolError(f"an owner sent {type(message).__name__}")

    def _joined(self, message: Message) -> list[Heard]:
        match message:
            case Joined(req_id, credit) if req_id.generation >= self._generation:
                self._generation, self._credit = req_id.generation, credit
                self.phase = Phase.OPEN
                return [Opened()]
            case Joined(req_id, _):
                raise LogUnavailableError(
                    f"the process owned the log as generation {req_id.generation}; it was replaced"
                )
            case ShardRefused(cause=cause):
                raise LogProtocolError(cause)
        raise LogProtocolError(f"a join is answered by {type(message).__name__}")

    def _answered(self, answer: Answered) -> Answered:
        size = self._unanswered.pop(answer.number, None)
        if size is None:
            raise LogProtocolError(f"an answer to request {answer.number}, which was not made")
        self._used -= size
        self._send_waiting()
        return answer

    def _send_waiting(self) -> None:
        while self._waiting and (not self._used or self._used + self._waiting[0].message.size <= self._credit):
            message = self._waiting.popleft().message
            self._unanswered[message.req_id.sequence] = message.size
            self._used += message.size
            self._send(message)

    def _send(self, message: Message) -> None:
        self._out.append(encode_message(VERSION, message))

    def _next(self) -> int:
        if self.phase is not Phase.OPEN:
            raise LogUnavailableError("the connection to the log's owner is not open")
        self._number = self._number % MAX_NUMBER + 1
        return self._number

    def _id(self, number: int, generation: int | None = None) -> ReqId:
        return ReqId(0, self._generation if generation is None else generation, 0, number)
