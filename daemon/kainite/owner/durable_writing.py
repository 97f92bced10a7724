"""Decides on the owner's folded state, queues what was decided, and makes it durable batch by batch.

::

    decide, fold ─► queue ─► batch ─► PutItem ─► lease valid? ─► acknowledge, tell followers
                                ▲        │ one in flight
                                └────────┘

What a decision appends is folded at once, and acknowledged when its batch is durable and the lease was still running
after the store's reply (:mod:`kainite.owner.append`). :mod:`kainite.owner.append_queue` says what may be granted
meanwhile.

What a crash leaves behind, step by step:

* before PutItem     nothing; whoever asked was acknowledged nothing;
* after PutItem      the batch; who asks again is recognised;
* fenced             the batch in flight met a fence: everybody who waits is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from kainite.base.errors import KainiteError, LogUnavailableError
from kainite.log.contract import LogStore
from kainite.log.format.entry import Batch, Entry
from kainite.log.state.folded import FoldedLog
from kainite.log.state.summary import LogSummary, as_text
from kainite.owner.append import PartitionWriter, take_steps_async
from kainite.owner.append_queue import AppendQueue, PendingAppend
from kainite.owner.mount import Mount
from kainite.owner.unit_metrics import UnitMetrics
from kainite.settings import LogSettings

_logger = logging.getLogger(__name__)

Decision = Callable[[FoldedLog], Sequence[Entry]]
"""Returns the entries that it has folded into the state that it is given."""


class DurableWriting:
    """Writes one log partition for its owner.

    Args:
        state: the folded log; ahead of the store by the queued entries.
        queue: the queue of what is not durable yet.
        store, mounted: the log's store, and the hold on its partition.
        settings: the sizes and intervals of batches, and of heartbeats.
        metrics: counts what becomes durable.
        clock: returns seconds that only go forward.
        summary: returns the log's figures, which each heartbeat writes into HEAD.
        fail: ends the owner with an error.
    """

    def __init__(
        self,
        state: FoldedLog,
        queue: AppendQueue,
        store: LogStore,
        mounted: Mount,
        settings: LogSettings,
        metrics: UnitMetrics,
        clock: Callable[[], float],
        summary: Callable[[], LogSummary],
        fail: Callable[[KainiteError], None],
    ) -> None:
        self._state = state
        self._queue = queue
        self._writer = PartitionWriter(
            store, mounted, state.next_id, "log", _logger, self._tell_followers, lambda: as_text(summary())
        )
        self._settings = settings
        self._metrics = metrics
        self._clock = clock
        self._fail = fail
        self.followers: set[Callable[[Batch], None]] = set()
        """Functions that are called with each batch that becomes durable, in order; each must return at once."""

    @property
    def next_id(self) -> int:
        """Returns the id after the last entry that is durable and may be acknowledged."""
        return self._writer.next_id

    async def write(self, decide: Decision) -> None:
        """Appends what is decided; returns when that, and all that the decision depends on, is durable.

        Returns so also if the decision is to append nothing. Waits before the decision while the queue is full.
        """
        await self._queue.room()
        if entries := self.decided(decide):
            await self.durable(entries)
        else:
            await self._queue.flush()

    def decided(self, decide: Decision) -> Sequence[Entry]:
        """Returns the entries that ``decide`` has folded; the owner fails where ``decide`` raises after it folded some.

        Such entries never come into the queue. Every later entry would have another transaction id than its fold. The
        next owner begins with what is durable; what the decision was made for, whoever asked is told
        (:mod:`kainite.peers.sharing.refused_appends`).
        """
        next_id = self._state.next_id
        try:
            return decide(self._state)
        except BaseException as error:
            if self._state.next_id != next_id:
                _logger.exception("log's owner gives up its state")
                self._fail(LogUnavailableError(f"the log's owner broke in the midst of a decision: {error!r}"))
            raise

    async def durable(self, entries: Sequence[Entry]) -> None:
        """Queues entries that are folded; returns when they are durable."""
        began = self._clock()
        await self._queue.add(entries).durable()
        self._metrics.appended(self._clock() - began)

    async def write_batches(self) -> None:
        """Writes what is queued, batch after batch, until cancelled.

        Raises:
            LogFencedError: another owner has the partition.
        """
        clock = asyncio.get_running_loop().time
        next_put = 0.0
        while True:
            await self._queue.filled()
            await asyncio.sleep(next_put - clock())
            next_put = clock() + self._settings.put_interval
            await self._put(self._queue.pack(self._settings.batch_bytes))

    async def beat(self) -> None:
        """Renews the lease until cancelled; raises as :meth:`write_batches`."""
        await take_steps_async(self._writer.heartbeat_steps(self._settings.heartbeat))

    async def _put(self, packed: Sequence[PendingAppend]) -> None:
        entries = tuple(entry for pending in packed for entry in pending.entries)
        began = self._clock()
        await take_steps_async(self._writer.append_steps(entries))
        self._metrics.durable(entries, sum(pending.size for pending in packed), self._clock() - began)
        self._queue.became_durable(packed)

    def _tell_followers(self, batch: Batch) -> None:
        for follower in tuple(self.followers):
            follower(batch)
