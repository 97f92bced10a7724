"""Limits how often a lasting condition is told."""

from __future__ import annotations

from collections.abc import Callable


class NowAndThen:
    """Says yes once in so many seconds.

    Args:
        seconds: between two answers that are yes.
        clock: seconds that only go forward.
        wait: seconds before the first answer that is yes.
    """

    def __init__(self, seconds: float, clock: Callable[[], float], wait: float = 0.0) -> None:
        self._seconds = seconds
        self._clock = clock
        self._next = clock() + wait

    def is_due(self) -> bool:
        """Returns whether it is time to tell; if so, the next time is so many seconds from now."""
        now = self._clock()
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True
