"""The source of a shard consumer's batches: one interface for polling and enhanced fan-out."""

from __future__ import annotations

from typing import Protocol

from kainite.base.checkpoint import Checkpoint
from kainite.base.position import Position
from kainite.kinesis.client import StreamClient
from kainite.kinesis.read.polling import PollingReader
from kainite.kinesis.read.read_ahead import ReadAhead
from kainite.kinesis.read.record_batch import Render
from kainite.kinesis.shards import HashRange
from kainite.observe.meter import SILENT, Meter
from kainite.settings import StreamSettings


class ShardSource(Protocol):
    """Reads a shard's batches ahead, in order; see :class:`~kainite.kinesis.read.polling.PollingReader`.

    ``ahead.next()`` raises StreamError where the shard cannot be read and waiting will not mend it, or where the source
    is closed, and SettingsError where the checkpoint is AT_TIMESTAMP and the settings name no time.
    """

    @property
    def opened_at(self) -> float | None: ...
    @property
    def millis_behind_latest(self) -> int | None: ...
    @property
    def ahead(self) -> ReadAhead: ...
    async def close(self) -> None: ...


class OpenSource(Protocol):
    """Makes the source of a shard that begins after ``start``."""

    def __call__(
        self, shard_id: str, hash_range: HashRange | None, start: Checkpoint, settings: StreamSettings,
        *, cut_at: Position | None,
    ) -> ShardSource: ...  # fmt: skip


def polling(stream: StreamClient, *, render: Render, meter: Meter = SILENT) -> OpenSource:
    """Returns the function that opens sources that poll ``stream``; ``render`` makes the children's lines."""

    def open_source(
        shard_id: str, hash_range: HashRange | None, start: Checkpoint, settings: StreamSettings,
        *, cut_at: Position | None,
    ) -> ShardSource:  # fmt: skip
        keys = deciding_range(hash_range, settings)
        return PollingReader(
            stream, shard_id, start, settings, cut_at=cut_at, hash_range=keys, meter=meter, render=render
        )

    return open_source


def deciding_range(hash_range: HashRange | None, settings: StreamSettings) -> HashRange | None:
    """Returns the range in which a KPL aggregate must lie; None where no aggregate is dropped.

    As in KCL, a worker that does not look at the shards when it starts does not know their ranges.
    """
    return None if settings.skip_sync_if_leases else hash_range
