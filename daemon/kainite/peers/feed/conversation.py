"""The messages between a follower and the log's owner, on the follower's side; no I/O, no clock.

The connection's Hellos are exchanged (:mod:`kainite.peers.connection.core`); the conversation begins with Follow.
From then on the owner sends batches, and the id up to which all were sent; any other message ends the connection.

The follower refuses an owner of a lower generation than HEAD named, and a batch of another generation than its message
names: an owner sends only batches that it has put itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from kainite.base.errors import LogProtocolError, LogUnavailableError
from kainite.log.format.batch_codec import decode
from kainite.peers.connection.generation import OwnerGeneration
from kainite.peers.feed.buffer import FedBatch
from kainite.peers.messages import (
    Elsewhere,
    FeedBatch,
    FeedTaken,
    FeedUpTo,
    Follow,
    Message,
    OutcomesAt,
    RequestRefused,
)


@dataclass(frozen=True, slots=True)
class UpTo:
    """Every entry below ``next_id`` is durable, and was sent or never will be."""

    next_id: int


FeedHeard: TypeAlias = FedBatch | UpTo


@dataclass(frozen=True, slots=True)
class Wishes:
    """The things that a follower asks the owner for.

    Attributes:
        log: the log's table and partition, as ``TABLE/PARTITION``.
        name: the follower's name, which no other follower has.
        credit: bytes that may be under way.
        payload: the most bytes of deltas that are sent along with a batch.
        outcomes: whether the follower announces outcomes.
    """

    log: str
    name: str
    credit: int
    payload: int
    outcomes: bool


class FeedConversation:
    """The conversation on one connection.

    Args:
        generation: the generation of the owner that HEAD named.
    """

    def __init__(self, generation: int) -> None:
        self._generation = OwnerGeneration(generation)

    def follow(self, wishes: Wishes, next_id: int) -> Message:
        """Returns the first message of the conversation.

        Args:
            wishes: the things that the follower asks for.
            next_id: the first entry that the follower does not have.
        """
        names, sizes = (wishes.log, wishes.name), (wishes.credit, wishes.payload)
        return Follow(self._generation.value, 0, *names, next_id, *sizes, wishes.outcomes)

    def take(self, message: Message) -> FeedHeard:
        """Takes a message of the owner; returns its meaning.

        Raises:
            LogProtocolError: the protocol forbids the message now, or the message is about another log.
            LogUnavailableError: the peer does not own the log.
            LogCorruptError: a batch does not read back as written.
        """
        if isinstance(message, Elsewhere):
            raise LogUnavailableError(f"the process does not own the log; {message.address or 'nobody'} does")
        if isinstance(message, RequestRefused):
            raise LogProtocolError(message.cause)
        self._generation.check(message.generation)
        match message:
            case FeedBatch():
                return self._batch(message)
            case FeedUpTo(next_id=next_id):
                return UpTo(next_id)
        raise LogProtocolError(f"an owner sent {type(message).__name__} to a follower")

    def taken(self, next_id: int, size: int) -> Message:
        """Returns a message: every entry below ``next_id`` is folded, and ``size`` bytes of credit come back."""
        return FeedTaken(self._generation.value, 0, next_id, size)

    def outcomes_at(self, last_id: int) -> Message:
        """Returns the message that the outcomes partition has durable entries up to ``last_id``."""
        return OutcomesAt(self._generation.value, 0, last_id)

    def _batch(self, message: FeedBatch) -> FedBatch:
        batch = decode(message.index, message.payload)
        if batch.generation != message.generation or not batch.entries:
            raise LogProtocolError(f"an owner of generation {message.generation} sent a batch of another one")
        return FedBatch(batch, message.payload is not None, message.size)
