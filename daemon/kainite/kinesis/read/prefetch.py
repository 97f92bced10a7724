"""A bounded queue of the batches that a shard's reader has fetched ahead of the child: back-pressure."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

from kainite.base.errors import KainiteError
from kainite.kinesis.read.record_batch import RecordBatch, ShardEnd
from kainite.settings import StreamSettings

Last: TypeAlias = ShardEnd | KainiteError
"""The end of a reader's work: the shard's end, or an error that waiting does not mend."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a queue: while any of them is reached, nothing more is fetched. The defaults are KCL's.

    One reply may exceed them, since its size is known only when it is there: a shard holds at
    most one reply more than these allow.
    """

    batches: int = 1
    bytes: int = 8 * 1024 * 1024
    records: int = 30_000

    @classmethod
    def of(cls, settings: StreamSettings) -> Bounds:
        return cls(settings.prefetch_batches, settings.prefetch_bytes, settings.prefetch_records)


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a taker is done with a shard. A taker is done with a batch when it asks for the next one.

    Attributes:
        until: a time, seconds since boot, such that the taker is done with all records that arrived before; None while
            no such time is known.
        arrived_ms: the arrival of the last record that the taker is done with, epoch milliseconds by Kinesis's clock;
            None before the first one.
        at_tip: a time, seconds since boot, at which the shard was open and the taker was done with all that it held;
            None while no such time is known. A reply that has records tells no such time: its shard may be closed.
    """

    until: float | None = None
    arrived_ms: int | None = None
    at_tip: float | None = None


class Prefetch:
    """A queue, first in, first out. Once the reader has ended, the queue's last item is that end, for ever.

    Invariant: ``_has_room`` is set when and only when no bound is reached; ``_has_item`` when there
    is something to take.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._batches: deque[RecordBatch] = deque()
        self._last: Last | None = None
        self._put = self._taken = self._done = 0  # batches so far; one is done when the next one is asked for
        self._marks: deque[tuple[int, float, bool]] = deque()
        self._done_until: float | None = None
        self._at_tip: float | None = None
        self._arrived_ms: int | None = None  # the last arrival in the last batch that is done
        self._taken_ms: int | None = None  # the last arrival in the last batch that was taken
        self._has_room = asyncio.Event()
        self._has_item = asyncio.Event()
        self._update()

    @property
    def has_item(self) -> bool:
        """Tells whether there is something to take."""
        return self._has_item.is_set()

    async def room(self) -> None:
        """Waits until another reply may be fetched."""
        await self._has_room.wait()

    def put(self, *batches: RecordBatch) -> None:
        self._batches.extend(batches)
        self._put += len(batches)
        self._update()

    def mark(self, until: float, *, at_tip: bool = False) -> None:
        """Notes that every record that arrived before ``until`` (seconds since boot) is in the batches put so far.

        Args:
            until: the time.
            at_tip: whether the shard was open at that time, and held no other record.
        """
        if self._marks and self._marks[-1][0] == self._put:
            self._marks.pop()
        self._marks.append((self._put, until, at_tip))

    @property
    def reached(self) -> Reached:
        """Returns how far the taker is done."""
        while self._marks and self._marks[0][0] <= self._done:
            _, self._done_until, at_tip = self._marks.popleft()
            if at_tip:
                self._at_tip = self._done_until
        return Reached(self._done_until, self._arrived_ms, self._at_tip)

    def end(self, last: Last) -> None:
        """Ends the queue: nothing follows ``last``."""
        self._last = self._last or last
        self._update()

    async def take(self) -> RecordBatch | ShardEnd:
        """Returns the oldest batch, or the shard's end; raises the error that ended the reader."""
        self._done, self._arrived_ms = self._taken, self._taken_ms
        while True:
            await self._has_item.wait()
            if self._batches:
                batch = self._batches.popleft()
                self._taken += 1
                self._taken_ms = self._taken_ms if batch.arrival_ms is None else batch.arrival_ms
                self._update()
                return batch
            if isinstance(self._last, KainiteError):
                raise self._last
            if self._last is not None:
                return self._last

    def _update(self) -> None:
        full = (
            len(self._batches) >= self._bounds.batches
            or sum(batch.size for batch in self._batches) >= self._bounds.bytes
            or sum(batch.count for batch in self._batches) >= self._bounds.records
        )
        _set(self._has_room, not full)
        _set(self._has_item, bool(self._batches) or self._last is not None)


def _set(event: asyncio.Event, on: bool) -> None:
    if on:
        event.set()
    else:
        event.clear()
