"""Polls the rest of a shard that enhanced fan-out found closed, up to the shard's end.

AWS names the children of a closed shard with the last event; kinesis-mock and LocalStack never do. Only GetRecords
tells for certain that no record is left.
"""

from __future__ import annotations

from dataclasses import replace

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, Checkpoint
from kainite.base.errors import KainiteError
from kainite.base.position import Position
from kainite.kinesis.read.prefetch import Prefetch
from kainite.kinesis.read.record_batch import ShardEnd
from kainite.kinesis.read.shard_source import ShardSource
from kainite.settings import StreamSettings


def start_of_rest(
    start: Checkpoint,
    settings: StreamSettings,
    *,
    continuation: str | None,
    queued: Position | None,
    opened_at: float | None,
) -> tuple[Checkpoint, StreamSettings]:
    """Returns the checkpoint after which polling continues, and the settings for it.

    Args:
        start: the lease's checkpoint.
        settings: the reader's settings.
        continuation: the sequence number with which the last event ended, if any.
        queued: the position of the last record that was queued, if any.
        opened_at: the time of the first subscription by Kinesis's clock, epoch seconds: where LATEST was.
    """
    reached = Position(int(continuation)) if continuation else None
    if queued is not None and (reached is None or reached.sequence <= queued.sequence):
        reached = queued
    if reached is not None:
        return Checkpoint.at(reached), settings
    if start == LATEST and opened_at is not None:
        return AT_TIMESTAMP, replace(settings, initial_timestamp=opened_at)
    return start, settings


async def poll_rest(rest: ShardSource, queue: Prefetch) -> None:
    """Queues the batches of ``rest`` up to the shard's end, or the error that ends reading; closes ``rest``."""
    try:
        while True:
            await queue.room()
            item = await rest.ahead.next()
            if isinstance(item, ShardEnd):
                queue.end(item)
                return
            queue.put(item)
    except KainiteError as error:
        queue.end(error)
    finally:
        await rest.close()
