"""When the log's owner looks at what others have written for it: outcomes of the apply job, and requests. Pure.

Nobody tells the owner of either, unless the apply job follows the log (:mod:`kainite.peers.feed`): then it
announces outcomes that it has made durable.

==========================  =====================================  ====================================================
the process that announces  outcomes are read                      requests are read
==========================  =====================================  ====================================================
nobody                      at each look; while no unit is         now and then
                            unresolved, now and then
a follower                  when it has announced some that the    now and then
                            log lacks, and every OUTCOMES_S
                            seconds
==========================  =====================================  ====================================================

*Now and then* is at each fourth look, and at least every REQUESTS_S seconds. Each read of nothing costs a read unit,
all day: without a unit there is no outcome to come, and a request is a person's, who can wait for a second.

An announcement is a hint, and changes no decision: the owner copies only outcomes that it has read. An announcement
that is lost, repeated, late, or from an apply job that was replaced costs a read or OUTCOMES_S seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Final

OUTCOMES_S: Final = 5.0
"""Seconds between two reads of outcomes that nobody has announced, while somebody announces."""

REQUESTS_S: Final = 1.0
"""The most seconds between two reads of the inbox, and of outcomes while there is no unit that may have one."""

_LOOKS: Final = 4
"""So many looks are between two such reads where that is less."""


class Looking:
    """Decides when the owner looks for outcomes and for requests.

    Args:
        clock: returns seconds that never run backwards.
        poll: seconds between two looks.
        several: whether several apply jobs announce outcomes, each in a log partition of its own.
    """

    def __init__(self, clock: Callable[[], float], poll: float, *, several: bool = False) -> None:
        self._clock = clock
        self._several = several
        self._news = False  # of several apply jobs one has announced outcomes since the last look
        self._rarely = min(REQUESTS_S, _LOOKS * poll)
        self._announcers = 0
        self._told = -1
        self._outcomes_at: float | None = None
        self._requests_at: float | None = None
        self.wake = asyncio.Event()
        """Set when outcomes are announced; the task that waits for the event clears it."""

    @contextlib.contextmanager
    def announced(self) -> Iterator[None]:
        """Relies on announcements of outcomes while the context is entered."""
        self._announcers += 1
        try:
            yield
        finally:
            self._announcers -= 1
            self.wake.set()

    def told(self, last_id: int) -> None:
        """Notes an announcement that outcomes are durable up to ``last_id``."""
        if self._several or last_id > self._told:
            self._told = last_id
            self._news = self._several
            self.wake.set()

    def outcomes_due(self, through: int, *, unresolved: bool = True) -> bool:
        """Returns whether to read outcomes now, and notes the look.

        Args:
            through: the log has all outcomes up to here.
            unresolved: whether the log has a unit that may have an outcome to come.
        """
        now = self._clock()
        pause = OUTCOMES_S if self._announcers else 0.0 if unresolved else self._rarely
        told = self._news if self._several else self._told > through
        due = told or _over(self._outcomes_at, pause, now)
        if due:
            self._outcomes_at = now
            self._news = False
        return due

    def requests_due(self) -> bool:
        """Returns whether to read the inbox now, and notes the look if so."""
        now = self._clock()
        due = _over(self._requests_at, self._rarely, now)
        if due:
            self._requests_at = now
        return due


def _over(since: float | None, seconds: float, now: float) -> bool:
    return since is None or now >= since + seconds
