"""When the owner takes another append: the queue has room, and fewer units wait to be applied than the bound allows.

Where too many units wait to be applied (:mod:`kainite.log.state.backlog`), appends wait. An append that waits is not
folded: its records are simply not collected yet. The owner's own entries wait for the queue alone
(:mod:`kainite.owner.durable_writing`): they are outcomes and decisions, which make the backlog smaller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from kainite.base.logs import event
from kainite.base.now_and_then import NowAndThen
from kainite.log.state.backlog import LogBacklog, backlog_of, is_full
from kainite.log.state.folded import FoldedLog
from kainite.owner.append_queue import AppendQueue
from kainite.settings import LogSettings

_logger = logging.getLogger(__name__)

TELL_S = 60.0
"""Seconds between two warnings that appends wait for the apply job."""


class OwnersRoom:
    """Makes appends wait for room.

    Args:
        queue: the owner's queue.
        state: the folded log.
        settings: the bounds.
        clock: returns seconds that only go forward.
    """

    def __init__(self, queue: AppendQueue, state: FoldedLog, settings: LogSettings, clock: Callable[[], float]) -> None:
        self._queue = queue
        self._state = state
        self._settings = settings
        self._telling = NowAndThen(TELL_S, clock)

    def backlog(self) -> LogBacklog | None:
        """Returns the backlog of units while it keeps appends waiting; None while there is room."""
        return backlog_of(self._state) if is_full(self._state, self._settings) else None

    async def for_an_append(self) -> None:
        """Waits until the queue takes more and fewer units wait to be applied than the bound allows.

        Raises:
            KainiteError: the owner has failed.
        """
        await self._queue.room()
        if is_full(self._state, self._settings):
            if self._telling.is_due():
                event(_logger, logging.WARNING, "backlog is full", cause=backlog_of(self._state))
            await self._queue.room(lambda: not is_full(self._state, self._settings))
