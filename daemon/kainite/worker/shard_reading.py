"""Reads one shard from its lease's checkpoint, across restarts of the child.

A restart at LATEST must not skip the records that came since the first start: while the lease's checkpoint is still
LATEST, reading begins again at the time at which it began first.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, Checkpoint
from kainite.base.position import Position
from kainite.kinesis.read.prefetch import Reached
from kainite.kinesis.read.record_batch import RecordBatch, ShardEnd
from kainite.kinesis.read.shard_source import OpenSource, ShardSource
from kainite.leases.keeper import HeldLease
from kainite.settings import StreamSettings

ROUNDED_S: Final = 1.0
"""The most seconds by which the time of an iterator is rounded down; LATEST was not later than the sum of both."""


class ShardReading:
    """The sources of one shard, one after another.

    Args:
        lease: the shard's lease.
    """

    def __init__(self, lease: HeldLease) -> None:
        self._lease = lease
        self._source: ShardSource | None = None
        self._latest_at: float | None = None  # the time at which reading began at LATEST
        self._begins_at: Checkpoint | None = None  # where reading begins if the log has nothing of the shard
        self._timestamp: float | None = None

    @property
    def millis_behind_latest(self) -> int | None:
        """Returns how far the shard is behind, milliseconds; None before the first reply and while nothing is read."""
        return self._source.millis_behind_latest if self._source is not None else None

    @property
    def reached(self) -> Reached:
        """Returns how far the shard's records are done; an empty value while nothing is read."""
        return Reached() if self._source is None else self._source.ahead.queue.reached

    @property
    def started_ms(self) -> int | None:
        """Returns from what time on the shard is read, milliseconds since the epoch by Kinesis' clock.

        None where it is read from its beginning, or from where the log has it, or while that time is not known.
        """
        if self._source is None or self._begins_at not in (LATEST, AT_TIMESTAMP):
            return None
        if self._begins_at == AT_TIMESTAMP:
            return None if self._timestamp is None else math.ceil(self._timestamp * 1000)
        at = self._latest_at or self._source.opened_at
        return None if at is None else math.ceil((at + ROUNDED_S) * 1000)

    def open(self, open_source: OpenSource, settings: StreamSettings, cut_at: Position | None) -> None:
        """Begins to read after the lease's checkpoint.

        Args:
            open_source: makes the source.
            settings: the stream's settings.
            cut_at: the shard's position in the log: no batch reaches across it.
        """
        start = self._lease.checkpoint
        self._begins_at, self._timestamp = start if cut_at is None else None, settings.initial_timestamp
        if start == LATEST and self._latest_at is not None:
            start, settings = AT_TIMESTAMP, replace(settings, initial_timestamp=self._latest_at)
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

    async def close(self) -> None:
        """Ends the reading; may be called again."""
        source, self._source = self._source, None
        if source is not None:
            self._latest_at = self._latest_at or source.opened_at
            await source.close()
