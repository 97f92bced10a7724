"""Takes the appends of shards: what a child's call emitted, and the position that the call has reached.

An append is one of three, by the shard's position in the folded log:

===========================  ==========================================================================================
the append's records are     the owner
===========================  ==========================================================================================
up to the position           recognises the append: waits until the original is durable, and folds nothing
right behind the position    collects it (:mod:`kainite.log.collecting.collect`), and returns when it is durable
anything else                refuses it in one line; nothing of it is in the log
===========================  ==========================================================================================

Between the question whether there is room and the fold a copy of the append may have been folded, so the position is
asked again behind the wait. A crash before the append is durable leaves nothing: its records are delivered again.
"""

from __future__ import annotations

from collections.abc import Sequence

from kainite.base.clock import epoch_ms
from kainite.base.errors import LogAppendError, LogRequestError
from kainite.base.position import Position
from kainite.log.collecting.collect import begin, collect
from kainite.log.format.entry import Entry
from kainite.log.state.folded import FoldedLog
from kainite.owner.append_queue import AppendQueue
from kainite.owner.durable_writing import DurableWriting
from kainite.owner.reading_progress import ReadingProgress
from kainite.owner.room import OwnersRoom
from kainite.settings import UowSettings
from kainite.uow.fragment import Fragment


class ShardAppends:
    """Collects what comes through the shards of one log partition; raises as :class:`~kainite.log.client.LogClient`.

    Args:
        state: the folded log.
        uow: the settings by which units are collected.
        queue: knows the shards' durable positions.
        room: makes appends wait.
        reading: learns when records arrived.
        writing: decides, and makes durable what was decided.
    """

    def __init__(
        self,
        state: FoldedLog,
        uow: UowSettings,
        queue: AppendQueue,
        room: OwnersRoom,
        reading: ReadingProgress,
        writing: DurableWriting,
    ) -> None:
        self._state = state
        self._uow = uow
        self._queue = queue
        self._room = room
        self._reading = reading
        self._writing = writing

    async def position(self, shard_id: str) -> Position | None:
        """Returns the shard's durable position, behind its appends under way."""
        return await self._queue.position(shard_id)

    async def begin(self, at_ms: int, stream: str) -> int:
        """Makes a time the log's beginning of a stream, unless it has one; returns the beginning when it is durable."""

        def decided(state: FoldedLog) -> Sequence[Entry]:
            if stream not in state.awaited:
                self._reading.reported.expect_anew(stream)
            return begin(state, at_ms, epoch_ms(), stream)

        await self._writing.write(decided)
        return self._state.started.get(stream, at_ms)

    async def append(
        self, shard_id: str, first: Position, last: Position, fragments: Sequence[Fragment], after: Position | None
    ) -> None:
        """Appends the fragments of one call, as :meth:`kainite.log.client.LogClient.append`."""
        if not self._is_recognised(shard_id, last):
            await self._room.for_an_append()
        if self._is_recognised(shard_id, last):  # perhaps by a copy that was folded while this one waited
            await self.position(shard_id)
            return
        if (why := _why_not_next(self._state.positions.get(shard_id), after, first)) is not None:
            raise LogRequestError(f"shard {shard_id}: records {first} to {last} {why}; read on behind its position")
        self._reading.arrived(fragments)
        entries = self._collected(shard_id, first, last, fragments)
        self._reading.collected()
        await self._writing.durable(entries)

    def _collected(
        self, shard_id: str, first: Position, last: Position, fragments: Sequence[Fragment]
    ) -> Sequence[Entry]:
        """Returns the entries of an append, which are folded."""
        try:
            return self._writing.decided(lambda state: collect(state, self._uow, shard_id, last, fragments, epoch_ms()))
        except Exception as error:
            raise LogAppendError(
                f"the log's owner cannot decide on records {first.sequence} to {last.sequence} of shard {shard_id}, "
                f"an error in Kainite: {error!r}"
            ) from error

    def _is_recognised(self, shard_id: str, last: Position) -> bool:
        """Returns whether an append up to ``last`` was folded before."""
        reached = self._state.positions.get(shard_id)
        return reached is not None and last <= reached


def _why_not_next(reached: Position | None, after: Position | None, first: Position) -> str | None:
    """Returns why an append does not follow what the log has of its shard; None where it does.

    Without this check an append far behind the shard's position would make all records up to it count as copies.
    """
    if reached is not None and first <= reached:
        return f"overlap what the log has (up to {reached})"
    if after != reached:
        return f"follow {after or 'nothing'}, and the log has {f'records up to {reached}' if reached else 'none'}"
    return None
