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


class Counted:
    """Counts what may happen often, and is told at once, then once a minute with the count.

    Args:
        clock: seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._telling = NowAndThen(60.0, clock)
        self._times = 0

    def happened(self) -> int:
        """Counts one more; returns how often it has happened since it was last told, 0 when it is not to be told."""
        self._times += 1
        if not self._telling.is_due():
            return 0
        times, self._times = self._times, 0
        return times
