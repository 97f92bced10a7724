"""Tells how long ago a growing number was reached, by the observer's own clock. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable


class Ages:
    """Remembers when a number was seen to grow.

    Args:
        clock: seconds that only go forward.
        most: how many marks are kept at most; beyond that every second mark is dropped, and ages are less exact.
    """

    def __init__(self, clock: Callable[[], float], most: int = 4_096) -> None:
        self._clock = clock
        self._most = most
        self._numbers: list[int] = []
        self._times: list[float] = []

    def reached(self, number: int) -> None:
        """Notes that all numbers below ``number`` were reached by now."""
        if self._numbers and number <= self._numbers[-1]:
            return
        if len(self._numbers) >= self._most:
            # The later mark of each pair stays, so that a number between the two counts as younger, never as older.
            self._numbers, self._times = self._numbers[1::2], self._times[1::2]
        self._numbers.append(number)
        self._times.append(self._clock())

    def of(self, number: int) -> float:
        """Returns the seconds since ``number`` was reached; 0 if it was not reached."""
        place = bisect_right(self._numbers, number)
        return self._clock() - self._times[place] if place < len(self._times) else 0.0

    def forget(self, number: int) -> None:
        """Forgets the marks that no number from ``number`` on needs."""
        place = bisect_right(self._numbers, number)
        del self._numbers[:place], self._times[:place]
