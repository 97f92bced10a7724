"""What came by the feed and is not folded yet, and what must be read instead; no I/O, no clock.

=============  ==============================  =======================================================================
state          entered by                      the reader
=============  ==============================  =======================================================================
AWAY           the connection's end            reads DynamoDB as if there were no feed
FOLLOWING      the first word of the owner     folds what came, in order; reads DynamoDB where entries are missing:
               how far the log is durable      before a batch that came, or below what the owner says was sent
=============  ==============================  =======================================================================

Invariants: :meth:`FeedBuffer.take` gives batches that follow each other without a gap from the id that is asked for,
or overlap what the reader has, never one that begins behind a missing entry. What lies wholly behind the reader is
dropped. The bytes of a batch are free again when it was given or dropped, so what is buffered stays within the credit.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from kainite.log.format.entry import Batch

EVERYTHING: Final = -1
"""In the place of an id: read whatever the log has."""


@dataclass(frozen=True, slots=True)
class FedBatch:
    """A batch that came.

    Attributes:
        batch: it.
        has_data: its deltas came along.
        size: bytes that it takes of the credit.
    """

    batch: Batch
    has_data: bool
    size: int


@dataclass(frozen=True, slots=True)
class FeedStep:
    """What a reader does next.

    Attributes:
        batches: fold these, without the entries that it has.
        missing: then read DynamoDB: every entry below this id is there; EVERYTHING: nothing is known; None: do not.
    """

    batches: tuple[FedBatch, ...]
    missing: int | None


class FeedBuffer:
    """The batches of one feed, over all its connections."""

    def __init__(self) -> None:
        self._batches: deque[FedBatch] = deque()
        self._up_to: int | None = None
        self.freed = 0
        """Bytes of credit to give back; whoever gives them back sets it to 0."""

    @property
    def is_following(self) -> bool:
        return self._up_to is not None

    def add(self, fed: FedBatch) -> None:
        self._batches.append(fed)

    def said_up_to(self, next_id: int) -> None:
        """Hears that everything below ``next_id`` is durable, and was sent before or never will be."""
        self._up_to = max(next_id, self._up_to or 0)

    def has_news(self, next_id: int) -> bool:
        """Returns whether there is something to do for a reader that has every entry below ``next_id``."""
        return bool(self._batches) or (self._up_to or 0) > next_id

    def close(self) -> None:
        """Forgets what came: the connection has ended."""
        self._batches.clear()
        self._up_to = None
        self.freed = 0

    def take(self, next_id: int) -> FeedStep:
        """Returns what a reader does next that has every entry below ``next_id``."""
        if self._up_to is None:
            return FeedStep((), EVERYTHING)
        found: list[FedBatch] = []
        while self._batches and self._batches[0].batch.first_id <= next_id:
            fed = self._batches.popleft()
            self.freed += fed.size
            if fed.batch.last_id >= next_id:
                found.append(fed)
                next_id = fed.batch.last_id + 1
        there = self._batches[0].batch.first_id if self._batches else self._up_to
        return FeedStep(tuple(found), there if there > next_id else None)
