"""The serialization log as the daemon's other parts see it.

:class:`~kainite.log.owner.owner.LogOwner` implements the interface in the same process; a connection to an owner
elsewhere may implement it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kainite.base.position import Position
from kainite.uow.fragment import Fragment


class LogClient(Protocol):
    async def position(self, shard_id: str) -> Position | None:
        """Returns the position of the shard's last durable record in the log; None when the log has none of the shard.

        Waits for the shard's appends that are under way, also those that their callers gave up: what is returned is
        durable, and nothing beyond it can become durable but by a later append.

        Raises:
            LogFencedError, LogUnavailableError: as :meth:`append`.
        """

    async def append(self, shard_id: str, first: Position, last: Position, fragments: Sequence[Fragment]) -> None:
        """Appends the fragments of one ``processRecords`` call; returns when they are durable.

        Args:
            shard_id: the shard that the records came through.
            first: position of the call's first record.
            last: position of the call's last record; the shard's position from now on.
            fragments: what the child emitted; may be empty.

        An append whose ``last`` is not beyond the shard's position is a recognised duplicate: it
        changes nothing, and returns when the original is durable.

        Raises:
            LogRequestError: ``first`` is not beyond the shard's position but ``last`` is; the
                caller cuts its batch there.
            LogFencedError: another owner has the log partition; nothing more can be appended.
            LogUnavailableError: the owner has stopped; whether the append is durable is unknown.
        """
