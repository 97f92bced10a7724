"""Decides how long the apply job waits for more units at a low rate. Pure.

A micro-batch costs some hundredths of a second of processor time however few units it has. Back to back, micro-batches
of three units keep a processor busy with nine units a second. So while few units come, micro-batches begin at
intervals, and the interval grows as the rate falls; a unit that comes after a rest does not wait. The interval depends
on the rate of units, and not on the size of the last micro-batch: where units come steadily, a quick micro-batch has
few units, and the units behind it would wait for nothing.
"""

from __future__ import annotations

import math
from typing import Final

FULL: Final = 40.0
"""The rate, in units a second, from which on the next micro-batch begins at once."""

MEMORY_S: Final = 1.0
"""Seconds over which the rate is averaged."""


class Pace:
    """The intervals between micro-batches.

    Args:
        longest: the interval between the beginnings of two micro-batches, in seconds, while hardly any units come; 0
            means that no micro-batch waits.
    """

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._rate = 0.0
        self._began = -math.inf

    def begun(self, units: int, now: float) -> None:
        """Notes a micro-batch.

        Args:
            units: the number of its units, which came since the last micro-batch began.
            now: the time at which it began, in seconds by a clock that only goes forward.
        """
        passed = now - self._began
        if passed > 0:
            weight = -math.expm1(-passed / MEMORY_S)
            self._rate += weight * (units / passed - self._rate)
        self._began = now

    def pause(self, now: float) -> float:
        """Returns the seconds until the next micro-batch may begin."""
        return max(0.0, self._began + self._longest * (1 - self._rate / FULL) - now)
