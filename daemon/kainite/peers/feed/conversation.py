"""What a follower says to the log's owner, and what it hears; no I/O, no clock.

The connection's Hellos are exchanged (:mod:`kainite.peers.connection.core`); the conversation begins with Follow.
From then on the owner says batches, and up to where they were sent; whatever else it says ends the connection.

An owner of a lower generation than HEAD named is refused, and so is a batch of another generation than its message's:
an owner sends only what it has put itself.
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
    """Everything below ``next_id`` is durable, and was sent or never will be."""

    next_id: int


FeedHeard: TypeAlias = FedBatch | UpTo


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
    """What is said on one connection.

    Args:
        generation: of the owner that HEAD named.
    """

    def __init__(self, generation: int) -> None:
        self._generation = OwnerGeneration(generation)

    def follow(self, wishes: Wishes, next_id: int) -> Message:
        """Returns what the conversation begins with.

        Args:
            wishes: what is asked for.
            next_id: the first entry that this side does not have.
        """
        names, sizes = (wishes.log, wishes.name), (wishes.credit, wishes.payload)
        return Follow(self._generation.value, 0, *names, next_id, *sizes, wishes.outcomes)

    def take(self, message: Message) -> FeedHeard:
        """Takes what the owner says; returns what it means.

        Raises:
            LogProtocolError: the owner must not say it, or means another log.
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
        """Returns what says that everything below ``next_id`` is folded, and gives ``size`` bytes of credit back."""
        return FeedTaken(self._generation.value, 0, next_id, size)

    def outcomes_at(self, last_id: int) -> Message:
        """Returns what says that the outcomes partition has durable entries up to ``last_id``."""
        return OutcomesAt(self._generation.value, 0, last_id)

    def _batch(self, message: FeedBatch) -> FedBatch:
        batch = decode(message.index, message.payload)
        if batch.generation != message.generation or not batch.entries:
            raise LogProtocolError(f"an owner of generation {message.generation} sent a batch of another one")
        return FedBatch(batch, message.payload is not None, message.size)
