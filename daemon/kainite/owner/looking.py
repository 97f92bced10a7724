"""When the log's owner looks at what others have written for it: outcomes of the apply job, and requests. Pure.

Nobody tells the owner of either, unless the apply job follows the log (:mod:`kainite.peers.feed`): then it
announces outcomes that it has made durable.

==========================  =====================================  ====================================================
the process that announces  outcomes are read                      requests are read
==========================  =====================================  ====================================================
nobody                      at each look                           at each look
a follower                  when it has announced some that the    every REQUESTS_S seconds
                            log lacks, and every OUTCOMES_S
                            seconds
==========================  =====================================  ====================================================

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
"""Seconds between two reads of the inbox, while somebody announces outcomes."""


class Looking:
    """Decides when the owner looks for outcomes and for requests.

    Args:
        clock: returns seconds that never run backwards.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
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
        if last_id > self._told:
            self._told = last_id
            self.wake.set()

    def outcomes_due(self, through: int) -> bool:
        """Returns whether to read outcomes now, and notes the look; the log has all outcomes up to ``through``."""
        now = self._clock()
        due = not self._announcers or self._told > through or _over(self._outcomes_at, OUTCOMES_S, now)
        if due:
            self._outcomes_at = now
        return due

    def requests_due(self) -> bool:
        """Returns whether to read the inbox now, and notes the look if so."""
        now = self._clock()
        due = not self._announcers or _over(self._requests_at, REQUESTS_S, now)
        if due:
            self._requests_at = now
        return due


def _over(since: float | None, seconds: float, now: float) -> bool:
    return since is None or now >= since + seconds
