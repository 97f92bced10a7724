"""The follower's side of a connection to the log's owner; no I/O, no clock.

=========  =============================================  ======================================================
phase      waits for                                      then
=========  =============================================  ======================================================
GREETING   the owner's Hello                              sends Follow: OPEN
OPEN       batches, and up to where they were sent        OPEN
ENDED      nothing: the peer broke the protocol, or does  each further call raises
           not own the log (any more)
=========  =============================================  ======================================================

An owner of a lower generation than HEAD named is refused, and so is a batch of another generation than its frame's: an
owner sends only what it has put itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from kainite.base.errors import KainiteError, LogProtocolError, LogUnavailableError
from kainite.log.format.batch_codec import decode
from kainite.log.format.entry import ReqId
from kainite.peers.feed.buffer import Fed
from kainite.peers.wire.feed_messages import FeedBatch, FeedTaken, FeedUpTo, Follow, OutcomesAt
from kainite.peers.wire.frames import FrameDecoder, keep_alive
from kainite.peers.wire.hello import Hello, common_version, decode_hello, encode_hello
from kainite.peers.wire.layouts import Message
from kainite.peers.wire.shard_messages import VERSION, Elsewhere, ShardRefused
from kainite.peers.wire.versions import decode_message, encode_message


class Phase(Enum):
    GREETING = auto()
    OPEN = auto()
    ENDED = auto()


@dataclass(frozen=True, slots=True)
class UpTo:
    """Everything below ``next_id`` is durable, and was sent or never will be."""

    next_id: int


Heard: TypeAlias = Fed | UpTo


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a follower asks for.

    Attributes:
        log: table and log partition, as ``TABLE/PARTITION``.
        name: the follower's, unlike that of any other.
        credit: bytes that may be under way.
        payload: a batch's deltas come along where they have at most so many bytes.
        outcomes: it announces outcomes.
    """

    log: str
    name: str
    credit: int
    payload: int
    outcomes: bool


class FeedConversation:
    """One connection, from its beginning.

    Args:
        wishes: what is asked for.
        next_id: the first entry that this side does not have.
        generation: of the owner that HEAD named.
        introduction: what the Hello says of this process; empty: the follower's name.
    """

    def __init__(self, wishes: Wishes, next_id: int, generation: int, introduction: str = "") -> None:
        self.phase = Phase.GREETING
        self._generation = generation
        self._settled = False
        """Whether the owner's own generation is known."""
        self._follow = Follow(
            self._id(), wishes.log, wishes.name, next_id, wishes.credit, wishes.payload, wishes.outcomes
        )
        self._decoder = FrameDecoder()
        self._out = [encode_hello(Hello((VERSION,), introduction or wishes.name))]

    def to_send(self) -> bytes:
        """Returns what is to be sent, and forgets it."""
        out, self._out = b"".join(self._out), []
        return out

    def receive(self, data: bytes) -> list[Heard]:
        """Takes bytes; returns what they say.

        Raises:
            LogProtocolError: the peer does not speak the protocol, or means another log.
            LogUnavailableError: the peer does not own the log.
            LogCorruptError: a batch does not read back as written.
        """
        heard: list[Heard] = []
        try:
            self._decoder.receive(data)
            while (frame := self._decoder.next_frame()) is not None:
                if self.phase is Phase.GREETING:
                    self._greeted(frame.body)
                elif frame.body:
                    heard.append(self._take(decode_message(VERSION, frame.body)))
        except KainiteError:
            self.phase = Phase.ENDED
            raise
        return heard

    def taken(self, next_id: int, size: int) -> None:
        """Says that everything below ``next_id`` is folded, and gives ``size`` bytes of credit back."""
        self._send(FeedTaken(self._id(), next_id, size))

    def outcomes_at(self, last_id: int) -> None:
        """Says that the outcomes partition has durable entries up to ``last_id``."""
        self._send(OutcomesAt(self._id(), last_id))

    def alive(self) -> None:
        """Says that this side is alive."""
        if self.phase is Phase.OPEN:
            self._out.append(keep_alive(VERSION))

    def _greeted(self, body: bytes) -> None:
        hello = decode_hello(body)
        if common_version((VERSION,), hello.versions) is None:
            raise LogProtocolError(
                f"{hello.message or 'the peer'} does not speak version {VERSION} of the log's protocol"
            )
        self._decoder.expect_messages(VERSION)
        self.phase = Phase.OPEN
        self._send(self._follow)

    def _take(self, message: Message) -> Heard:
        if isinstance(message, Elsewhere):
            raise LogUnavailableError(f"the process does not own the log; {message.address or 'nobody'} does")
        if isinstance(message, ShardRefused):
            raise LogProtocolError(message.cause)
        self._check_generation(message.req_id.generation)
        match message:
            case FeedBatch(index=index, payload=payload):
                batch = decode(index, payload)
                if batch.generation != self._generation or not batch.entries:
                    raise LogProtocolError(f"an owner of generation {self._generation} sent a batch of another one")
                return Fed(batch, payload is not None, message.size)
            case FeedUpTo(next_id=next_id):
                return UpTo(next_id)
        raise LogProtocolError(f"an owner sent {type(message).__name__} to a follower")

    def _check_generation(self, generation: int) -> None:
        if not self._settled and generation >= self._generation:
            self._generation, self._settled = generation, True
        if generation != self._generation:
            raise LogUnavailableError(f"the peer owned the log as generation {generation}; it was replaced")

    def _send(self, message: Message) -> None:
        if self.phase is Phase.OPEN:
            self._out.append(encode_message(VERSION, message))

    def _id(self) -> ReqId:
        return ReqId(0, self._generation, 0, 0)
