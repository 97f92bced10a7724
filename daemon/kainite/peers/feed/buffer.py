"""Batches that the feed brought and the reader has not folded, and the entries to be read instead; no I/O, no clock.

=============  ==============================  =======================================================================
state          entered by                      the reader
=============  ==============================  =======================================================================
AWAY           the connection's end            reads DynamoDB as if there were no feed
FOLLOWING      the owner's first message       folds the batches that came, in order; reads DynamoDB where entries are
               how far the log is durable      missing before such a batch, or below the id up to which all was sent
=============  ==============================  =======================================================================

Invariants: :meth:`FeedBuffer.take` gives batches that follow each other without a gap from the id that is asked for,
or overlap the entries that the reader has, never one that begins behind a missing entry. A batch that lies wholly
behind the reader is dropped. The bytes of a batch are free again when it was given or dropped, so the buffered bytes
stay within the credit.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from kainite.log.format.entry import Batch

EVERYTHING: Final = -1
"""Stands in the place of an id, and means: read all entries that the log has."""


@dataclass(frozen=True, slots=True)
class FedBatch:
    """A batch that the feed brought.

    Attributes:
        batch: the batch itself.
        has_data: whether the batch's deltas came along.
        size: bytes that the batch takes of the credit.
    """

    batch: Batch
    has_data: bool
    size: int


@dataclass(frozen=True, slots=True)
class FeedStep:
    """The next step of a reader.

    Attributes:
        batches: the batches that the reader folds first, without the entries that it has.
        missing: the id below which the reader then reads every entry from DynamoDB; EVERYTHING means all entries that
            the log has, None that nothing is read.
    """

    batches: tuple[FedBatch, ...]
    missing: int | None


class FeedBuffer:
    """The batches of one feed, over all its connections."""

    def __init__(self) -> None:
        self._batches: deque[FedBatch] = deque()
        self._up_to: int | None = None
        self.freed = 0
        """Bytes of credit to give back to the owner; the code that gives them back sets this to 0."""

    @property
    def is_following(self) -> bool:
        return self._up_to is not None

    def add(self, fed: FedBatch) -> None:
        self._batches.append(fed)

    def said_up_to(self, next_id: int) -> None:
        """Notes that every entry below ``next_id`` is durable, and was sent before or never will be."""
        self._up_to = max(next_id, self._up_to or 0)

    def has_news(self, next_id: int) -> bool:
        """Returns whether a reader that has every entry below ``next_id`` has something to fold or to read."""
        return bool(self._batches) or (self._up_to or 0) > next_id

    def close(self) -> None:
        """Forgets all batches: the connection has ended."""
        self._batches.clear()
        self._up_to = None
        self.freed = 0

    def take(self, next_id: int) -> FeedStep:
        """Returns the next step of a reader that has every entry below ``next_id``."""
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
