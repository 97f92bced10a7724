"""The numbers that units of work had, as ranges: dense numbers without gaps are one range, however many they are."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import Final

MAX_RANGES: Final = 10_000
"""The most ranges; then the lowest is forgotten, so that a source with gaps everywhere takes no more memory."""


class NumberSet:
    """A set of numbers.

    Args:
        ranges: first and last number of each range, in order; they neither meet nor overlap.
        since: the number below which the set knows nothing any more; None if it knows all numbers.
    """

    def __init__(self, ranges: Iterable[tuple[int, int]] = (), since: int | None = None) -> None:
        known = [(first, last) for first, last in ranges]
        self._firsts = [first for first, _ in known]
        self._lasts = [last for _, last in known]
        self.since = since

    def __contains__(self, number: int) -> bool:
        at = bisect.bisect_right(self._firsts, number) - 1
        return at >= 0 and number <= self._lasts[at]

    def may_have(self, number: int) -> bool:
        """Returns whether the number is in the set, or too low for that to be known."""
        return number in self or (self.since is not None and number < self.since)

    def ranges(self) -> list[tuple[int, int]]:
        """Returns the ranges, as the constructor takes them."""
        return list(zip(self._firsts, self._lasts, strict=True))

    def add(self, number: int) -> None:
        """Adds a number; quick where it is among the highest."""
        if self._lasts and number == self._lasts[-1] + 1:  # mostly
            self._lasts[-1] = number
            return
        if number in self:
            return
        at = bisect.bisect_right(self._firsts, number)
        after_one = at > 0 and self._lasts[at - 1] == number - 1
        before_one = at < len(self._firsts) and self._firsts[at] == number + 1
        if after_one and before_one:
            self._lasts[at - 1] = self._lasts.pop(at)
            del self._firsts[at]
        elif after_one:
            self._lasts[at - 1] = number
        elif before_one:
            self._firsts[at] = number
        else:
            self._firsts.insert(at, number)
            self._lasts.insert(at, number)
            self._forget_lowest()

    def _forget_lowest(self) -> None:
        if len(self._firsts) > MAX_RANGES:
            del self._firsts[0]
            # A straggler may be far below what was forgotten before.
            self.since = max(self.since or 0, self._lasts.pop(0) + 1)
