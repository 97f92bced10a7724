"""What the daemon's other parts see of the serialization log.

The owner in the same process keeps this interface; so may a connection to one elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kainite.base.position import Position
from kainite.uow.fragment import Fragment


class LogClient(Protocol):
    async def position(self, shard_id: str) -> Position | None:
        """How far the shard's records are in the log; None when none of them is."""

    async def append(self, shard_id: str, first: Position, last: Position, fragments: Sequence[Fragment]) -> None:
        """Append what one ``processRecords`` call gave; returns when it is durable.

        Args:
            shard_id: the shard that the records came through.
            first: position of the call's first record.
            last: position of its last record; the shard's position from now on.
            fragments: what the child emitted; may be empty.

        An append whose ``last`` is not beyond the shard's position is a recognised duplicate: it
        changes nothing and returns at once.

        Raises:
            LogRequestError: ``first`` is not beyond the shard's position but ``last`` is; the
                caller cuts its batch there.
            LogFencedError: another owner has the log partition; nothing more can be appended.
            LogUnavailableError: the owner has stopped; whether the append is durable is unknown.
        """
