"""Where a shard consumer's batches come from: polling, or enhanced fan-out, behind one interface."""

from __future__ import annotations

from typing import Protocol

from kainite.kinesis.batch import RecordBatch, ShardEnd
from kainite.kinesis.client import StreamClient
from kainite.kinesis.reader import ShardReader
from kainite.kinesis.shards import HashRange
from kainite.leases.checkpoint import Checkpoint
from kainite.log.entry import Position
from kainite.settings import StreamSettings


class ShardSource(Protocol):
    """Gives a shard's batches in order; see :class:`~kainite.kinesis.reader.ShardReader`."""

    @property
    def opened_at(self) -> float | None: ...
    @property
    def millis_behind_latest(self) -> int | None: ...
    def start(self) -> None: ...
    async def next(self) -> RecordBatch | ShardEnd: ...
    async def close(self) -> None: ...


class OpenSource(Protocol):
    """Makes the source of a shard that begins after ``start``."""

    def __call__(
        self, shard_id: str, hash_range: HashRange | None, start: Checkpoint, settings: StreamSettings,
        *, cut_at: Position | None,
    ) -> ShardSource: ...  # fmt: skip


def polling(stream: StreamClient) -> OpenSource:
    """Sources that poll ``stream``."""

    def open_source(
        shard_id: str, hash_range: HashRange | None, start: Checkpoint, settings: StreamSettings,
        *, cut_at: Position | None,
    ) -> ShardSource:  # fmt: skip
        return ShardReader(stream, shard_id, start, settings, cut_at=cut_at)

    return open_source
