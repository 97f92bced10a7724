"""Appends what comes next in a shard, as a consumer does: behind the position that the log tells."""

from __future__ import annotations

from collections.abc import Sequence

from kainite.base.position import Position
from kainite.log.client import LogClient
from kainite.uow.fragment import Fragment


async def append_next(
    log: LogClient, shard_id: str, first: Position, last: Position, fragments: Sequence[Fragment]
) -> None:
    """Appends as :meth:`~kainite.log.client.LogClient.append`, behind the shard's durable position."""
    await log.append(shard_id, first, last, fragments, await log.position(shard_id))
