"""The queue of appends that the owner has folded and that are not durable yet. No I/O; it decides what may be granted.

Appends are decided and folded at once, and queued here. While one batch is in flight to the store, later appends are
packed into the next batch (group commit). The state in memory (*folded*) is therefore ahead of the store (*durable*) by
the queued entries.

The rule: **nothing is granted on what is folded and not durable.** Decisions about the next entries are made on the
folded state, because these entries become durable after all entries that they were decided on, or not at all. Anything
that leaves the owner waits until its entries are durable:

==========================================  ======================================================================
leaves the owner                            waits for
==========================================  ======================================================================
the answer to an append                     its entries (:meth:`PendingAppend.durable`); a unit that is dropped as sent
                                            again was queued before them
the answer to an append that is recognised  the append that it repeats (:meth:`AppendQueue.position`)
a shard's position, by which readers cut,   the shard's queued appends, and is then the durable one: such an append can
calls count as known, and checkpoints are   outlive its consumer (the shard's lease lapses while a put hangs, and
granted                                     comes back to this worker)
the answer to a retry or discard            its entry; without one, everything that the answer was decided on
                                            (:meth:`AppendQueue.flush`)
a snapshot's name in HEAD, and truncation   the snapshot's entry; what is still needed is computed as of that entry
                                            (:mod:`kainite.owner.upkeep`)
HEAD's high-water mark                      nothing: the writer counts durable entries alone
a batch, to who follows the log             its put's answer, and a lease that runs after it: as an acknowledgement
                                            (:mod:`kainite.owner.append`)
==========================================  ======================================================================

=============  =====================================================================================================
an append is   left by
=============  =====================================================================================================
queued         :meth:`AppendQueue.pack` puts it into a batch; it stays queued meanwhile
durable        its batch is durable: :meth:`AppendQueue.became_durable`; who waits for it is told
failed         the owner has failed: :meth:`AppendQueue.fail`. Nobody knows whether the append ever becomes durable
=============  =====================================================================================================

Nothing here is stored. After a crash a queued append was acknowledged to nobody: its records are delivered again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kainite.base.errors import KainiteError
from kainite.base.position import Position
from kainite.base.waiting import Changes
from kainite.log.format.entry import Entry, PositionMeta
from kainite.uow.packing import Blob

ENTRY_OVERHEAD = 200
"""Bytes that an entry takes in addition to its data, approximately; for the queue's bound and a batch's size."""


@dataclass(slots=True)
class PendingAppend:
    """The entries of one append, which become durable together; each task that waits for them has its own future."""

    entries: Sequence[Entry]
    size: int
    error: KainiteError | None = None
    waiting: list[asyncio.Future[None]] = field(default_factory=list)

    async def durable(self) -> None:
        """Waits until the entries are durable; raises the error of an owner that has failed before."""
        if self.error is not None:
            raise self.error
        waiter = asyncio.get_running_loop().create_future()
        self.waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            self.waiting.remove(waiter)  # while the store does not answer, cancelled waiters must not pile up
            raise

    def end(self, error: KainiteError | None = None) -> None:
        """Tells the waiting tasks that the entries are durable, or that nobody knows whether they ever will be."""
        self.error = error
        for waiter in self.waiting:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)
                waiter.exception()  # marks the error as handled: who waited may be cancelled before its turn


class AppendQueue:
    """Keeps the queued appends, and the shards' durable positions.

    Args:
        positions: the shards' positions in the log when the owner begins.
        limit: the queue takes more while it holds fewer bytes.
    """

    def __init__(self, positions: Mapping[str, Position], limit: int) -> None:
        self._limit = limit
        self._queue: deque[PendingAppend] = deque()
        self._durable = dict(positions)
        """The shards' durable positions; the owner tells no others."""
        self._unsettled: dict[str, PendingAppend] = {}
        """The last queued append of each shard that has one."""
        self._changed = Changes()
        self.bytes = 0
        """The bytes of the queued appends, approximately."""
        self.error: KainiteError | None = None
        """Why the owner has failed; None while it goes on."""

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def has_room(self) -> bool:
        return self.bytes < self._limit

    def add(self, entries: Sequence[Entry]) -> PendingAppend:
        """Queues the entries of an append, which are folded already."""
        pending = PendingAppend(entries, size_of(entries))
        self._queue.append(pending)
        self.bytes += pending.size
        for meta in _positions(entries):
            self._unsettled[meta.shard] = pending
        self._changed.tell()
        return pending

    def pack(self, most: int) -> list[PendingAppend]:
        """Returns as many appends, from the first on, as a batch of ``most`` bytes takes; always at least one."""
        packed: list[PendingAppend] = []
        size = 0
        for pending in self._queue:
            if packed and size + pending.size > most:
                break
            packed.append(pending)
            size += pending.size
        return packed

    def became_durable(self, packed: Sequence[PendingAppend]) -> None:
        """Removes the first appends of the queue, which are durable now, and wakes the tasks that wait for them."""
        for pending in packed:
            self._queue.popleft()
            self.bytes -= pending.size
            for meta in _positions(pending.entries):
                self._durable[meta.shard] = meta.position
                if self._unsettled.get(meta.shard) is pending:
                    del self._unsettled[meta.shard]
            pending.end()
        self._changed.tell()

    def take_positions(self, positions: Mapping[str, Position]) -> None:
        """Replaces the durable positions of all shards: the log has durably dropped the former positions."""
        self._durable = dict(positions)

    def fail(self, error: KainiteError) -> None:
        """Ends all waits with the owner's error; no append becomes durable from now on."""
        self.error = error
        self._changed.tell()
        for pending in self._queue:
            pending.end(error)

    async def position(self, shard_id: str) -> Position | None:
        """Returns a shard's durable position, once its queued appends are durable.

        Raises:
            KainiteError: the owner has failed.
        """
        while (pending := self._unsettled.get(shard_id)) is not None:
            await pending.durable()
        self._check()  # an owner that has failed may have folded a position that is in no queue
        return self._durable.get(shard_id)

    async def flush(self) -> None:
        """Waits until all appends that are queued now are durable."""
        if self._queue:
            await self._queue[-1].durable()
        self._check()

    async def filled(self) -> None:
        """Waits until an append is queued."""
        await self._changed.until(lambda: bool(self._queue))

    async def room(self, also: Callable[[], bool] = lambda: True) -> None:
        """Waits until the queue has room, and ``also`` holds.

        Args:
            also: another condition, which changes only when entries are queued or become durable.

        Raises:
            KainiteError: the owner has failed.
        """
        await self._changed.until(lambda: self.error is not None or (self.has_room and also()))
        self._check()

    def _check(self) -> None:
        if self.error is not None:
            raise self.error


def size_of(entries: Sequence[Entry]) -> int:
    """Returns about how many bytes the entries take; a blob counts once, however many of them share it."""
    size = ENTRY_OVERHEAD * len(entries)
    blob: Blob | None = None
    seen: set[int] = set()
    for entry in entries:
        size += len(entry.data) + 8 * (len(entry.touched.written) + len(entry.touched.read))
        if (piece := entry.piece) is not None and piece.blob is not blob:
            blob = piece.blob
            if id(blob) not in seen:
                seen.add(id(blob))
                size += len(blob.frame)
    return size


def _positions(entries: Sequence[Entry]) -> Iterator[PositionMeta]:
    return (entry.meta for entry in entries if isinstance(entry.meta, PositionMeta))
