"""Reads one shard from its lease's checkpoint, across restarts of the child.

A child's restart at LATEST must not skip the records that came since the first start: while the lease's checkpoint is
still LATEST, reading begins again at the time at which it began first. With units of work that time is durable
(:mod:`kainite.worker.beginning`); without them it is lost with the daemon, as in KCL.
"""

from __future__ import annotations

from dataclasses import replace

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST
from kainite.base.position import Position
from kainite.kinesis.read.prefetch import Reached
from kainite.kinesis.read.record_batch import RecordBatch, ShardEnd
from kainite.kinesis.read.shard_source import OpenSource, ShardSource
from kainite.leases.keeper import HeldLease
from kainite.observe.shard_status import Standstill
from kainite.settings import StreamSettings


class ShardReading:
    """The sources of one shard, one after another.

    Args:
        lease: the shard's lease.
    """

    def __init__(self, lease: HeldLease) -> None:
        self._lease = lease
        self._source: ShardSource | None = None
        self._from_latest = False  # the present source was asked for at LATEST
        self._latest_at: float | None = None  # the time at which reading began at LATEST

    @property
    def millis_behind_latest(self) -> int | None:
        """Returns how far the shard is behind, milliseconds; None before the first reply and while nothing is read."""
        return self._source.millis_behind_latest if self._source is not None else None

    @property
    def standstill(self) -> Standstill | None:
        """Returns for how long the reading has not got on; None while records wait for the consumer, too."""
        source = self._source
        return None if source is None or source.ahead.queue.has_item else source.ahead.watch.standstill

    @property
    def throttled(self) -> float | None:
        """Returns the seconds for which Kinesis has throttled the reading; None while it does not."""
        return None if self._source is None else self._source.ahead.watch.throttled

    @property
    def reached(self) -> Reached:
        """Returns how far the shard's records are done; an empty value while nothing is read."""
        return Reached() if self._source is None else self._source.ahead.queue.reached

    def open(
        self, open_source: OpenSource, settings: StreamSettings, cut_at: Position | None, begun: float | None = None
    ) -> None:
        """Begins to read after the lease's checkpoint.

        Args:
            open_source: makes the source.
            settings: the stream's settings.
            cut_at: the shard's position in the log: no batch reaches across it.
            begun: the time to begin at instead of LATEST or AT_TIMESTAMP, epoch seconds.
        """
        start = self._lease.checkpoint
        self._from_latest = start == LATEST and begun is None and cut_at is None
        at = self._latest_at if self._from_latest else begun
        if at is not None:
            start, settings = AT_TIMESTAMP, replace(settings, initial_timestamp=at)
        hash_range = self._lease.lease.hash_range
        source = open_source(self._lease.shard_id, hash_range, start, settings, cut_at=cut_at)
        source.ahead.start()
        self._source = source

    async def next(self) -> RecordBatch | ShardEnd:
        """Waits for the next batch, or the shard's end.

        Raises:
            StreamError: the shard cannot be read.
        """
        assert self._source is not None
        return await self._source.ahead.next()

    def read_again(self) -> None:
        """Makes the reader read sooner, if it does not know whether it has read all."""
        if self._source is not None:
            self._source.ahead.wanted.set()

    async def close(self) -> None:
        """Ends the reading; may be called again."""
        source, self._source = self._source, None
        if source is not None:
            if self._from_latest:
                self._latest_at = self._latest_at or source.opened_at
            await source.close()
