"""Sets an append aside that breaks the log's owner, so that it never meets another owner.

An owner decides on an append and folds its entries at once. An error in that code, which nobody knows of, would come
again at the next owner, and at each one after it: the records are delivered until they are in the log. So the owner
refuses such an append (:class:`~kainite.base.errors.LogAppendError`) before it ends, or goes on if it has folded
nothing, and the process that holds the shard makes another append of it.

==========================  ===========================================================================================
an append is                then
==========================  ===========================================================================================
made                        it becomes durable, mostly
refused                     it is made again without its deltas: each unit fails with the cause, and holds back what
                            touches the rows that it would have touched; the shard goes on behind it
refused again               the shard is *held* at it: each append that begins there is refused here, with the cause,
                            and asks no owner. The lease is kept; a restart of this process tries once more
==========================  ===========================================================================================

Nothing here is durable. A crash before the second append is durable delivers the records again: the owner at that time
refuses the append once more, and this is begun anew. So an append ends at most one owner for each time that a process
takes it up, and never one owner after another.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from kainite.base.errors import LogAppendError, LogRequestError
from kainite.base.logs import event
from kainite.base.position import Position
from kainite.uow.fragment import Fragment, Reject

_logger = logging.getLogger(__name__)

Put = Callable[[Sequence[Fragment]], Awaitable[None]]
"""Makes an append of fragments; the shard and its records stay the same."""


@dataclass(frozen=True, slots=True)
class _Held:
    """The last record of the append that a shard is held at, and the cause."""

    last: Position
    cause: str


class RefusedAppends:
    """Makes the appends of one process's shards, and sets those aside that an owner refuses as broken."""

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}

    async def append(
        self, put: Put, shard_id: str, first: Position, last: Position, fragments: Sequence[Fragment]
    ) -> None:
        """Makes an append, or sets it aside.

        Raises:
            LogRequestError: the shard is held at the append, or the log's state forbids it.
        """
        self._check(shard_id, first)
        try:
            await put(fragments)
        except LogAppendError as error:
            event(_logger, logging.ERROR, "append refused, its units are set aside", shard=shard_id,
                  first=first.sequence, last=last.sequence, units=_names(fragments), error=error)  # fmt: skip
            await self._set_aside(put, shard_id, first, last, set_aside(fragments, str(error)))

    async def _set_aside(
        self, put: Put, shard_id: str, first: Position, last: Position, failing: Sequence[Fragment]
    ) -> None:
        try:
            await put(failing)
        except LogAppendError as error:
            self._held[shard_id] = _Held(last, str(error))
            self._check(shard_id, first)

    def _check(self, shard_id: str, first: Position) -> None:
        held = self._held.get(shard_id)
        if held is None:
            return
        if first > held.last:  # somebody else has passed it
            del self._held[shard_id]
            return
        raise LogRequestError(
            f"shard {shard_id} is held at the records up to {held.last.sequence}, which break the log's owner "
            f"({held.cause}): report this with the daemon's log; kainite leases reset lets reading go on behind them"
        )


def set_aside(fragments: Iterable[Fragment], cause: str) -> list[Fragment]:
    """Returns fragments that make each unit fail with the cause, and bring none of its deltas."""
    return [
        replace(
            fragment,
            deltas=(),
            identities=(),
            piece=None,
            without=(),
            misfits=(),
            signed=b"",
            rejects=(Reject(cause, _line(fragment)),),
        )
        for fragment in fragments
    ]


def _line(fragment: Fragment) -> str:
    """Returns the beginning of a fragment's deltas, as they would have stood in the log."""
    text = fragment.piece.read() if fragment.piece is not None else b""
    return text[: Reject.MAX_LINE].decode(errors="replace")


def _names(fragments: Sequence[Fragment]) -> str:
    names = [fragment.uow for fragment in fragments]
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
