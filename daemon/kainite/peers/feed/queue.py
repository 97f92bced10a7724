"""The batches that are still to be sent to one follower of the log; no I/O, no clock.

=============  ==============================================  =========================================================
the queue      a batch becomes durable                         the follower gives credit
=============  ==============================================  =========================================================
empty          the batch is sent at once, if there is credit  nothing
waits          the batch is queued                             the queued batches are sent in order
full           everything queued is dropped: the follower      batches that became durable later are sent in order
               reads it in DynamoDB
=============  ==============================================  =========================================================

Invariants:

* every batch that leaves was given to :meth:`FeedQueue.add`; batches leave in order of ids, each at most once;
* a batch below :attr:`FeedQueue.up_to` was returned or will never be: the follower must not wait for it;
* at most the credit and one batch are under way; at most MAX_QUEUED bytes or one batch wait, however slow the follower
  is: a batch takes the memory of its deltas while it waits, whether they are sent along or not.

The queue ends with the connection: a follower that connects again begins at the durable tail, and reads the missing
entries in DynamoDB.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from kainite.log.format.entry import Batch
from kainite.peers.connection.frames import MAX_BODY

MAX_QUEUED: Final = 16 << 20
"""How many bytes may wait for one follower, approximately."""

MAX_INDEX: Final = 4 << 20
"""The bytes of the largest index, approximately, that is sent: the follower reads a larger batch in DynamoDB."""

MAX_PAYLOAD: Final = MAX_BODY // 2
"""The most bytes of deltas that are sent along with a batch: the follower takes no longer message."""

_RECORD_BYTES: Final = 250
"""Bytes that an entry takes in the index in addition to its signatures, approximately."""


class FeedQueue:
    """One follower's queue.

    Args:
        durable: the id behind the last durable entry.
        taken: the first entry that the follower does not have.
        credit: bytes that may be under way.
        payload: the most bytes of deltas that are sent along with a batch.
    """

    def __init__(self, durable: int, taken: int, credit: int, payload: int) -> None:
        self._durable = durable
        self._taken = taken
        self._credit = credit
        self._payload = min(payload, MAX_PAYLOAD)
        self._queue: deque[tuple[Batch, int]] = deque()
        self._queued = 0

    @property
    def up_to(self) -> int:
        """Returns the id below which :meth:`next` returns no batch any more, and every entry is durable."""
        return self._queue[0][0].first_id if self._queue else self._durable

    @property
    def lag(self) -> int:
        """Returns how many durable entries the follower has not folded."""
        return max(0, self._durable - self._taken)

    def begin(self, durable: int) -> None:
        """Notes up to which id the log is durable; from now on :meth:`add` is called with every later batch."""
        self._durable = durable

    def add(self, batch: Batch) -> None:
        """Takes a batch that has just become durable; the caller gives the batches in order."""
        self._durable = batch.last_id + 1
        index = sum(
            8 * (len(entry.touched.written) + len(entry.touched.read)) + _RECORD_BYTES for entry in batch.entries
        )
        size = index + _data_bytes(batch)
        if self._queued + size > MAX_QUEUED or index > MAX_INDEX:
            self._queue.clear()
            self._queued = 0
        if index <= MAX_INDEX:
            self._queue.append((batch, size))
            self._queued += size

    def has_payload(self, batch: Batch) -> bool:
        """Returns whether a batch's deltas are sent along."""
        return _data_bytes(batch) <= self._payload

    def next(self) -> Batch | None:
        """Returns the batch to be sent next, and removes it; None while no batch waits, or there is no credit."""
        if not self._queue or self._credit <= 0:
            return None
        batch, size = self._queue.popleft()
        self._queued -= size
        return batch

    def sent(self, size: int) -> None:
        """Takes credit for a batch of ``size`` bytes that :meth:`next` has returned."""
        self._credit -= size

    def taken(self, next_id: int, size: int) -> None:
        """Notes that the follower has every entry below ``next_id``, and gives ``size`` bytes of credit back."""
        self._taken = max(self._taken, next_id)
        self._credit += size


def _data_bytes(batch: Batch) -> int:
    blobs = {id(entry.piece.blob): len(entry.piece.blob.frame) for entry in batch.entries if entry.piece is not None}
    return sum(len(entry.data) for entry in batch.entries) + sum(blobs.values())
