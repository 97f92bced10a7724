"""Tells a task that finds work again and again when to let the loop's other tasks run. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

LONGEST_S: Final = 0.005
"""How long a task may keep the loop, in seconds.

Leases are renewed on the same loop, and hundreds of tasks may have work."""


class Breather:
    """Measures how long a task has run since it last waited for anything.

    Counts time, not pieces of work: the pieces may be of any size.

    Args:
        clock: seconds, never running backwards.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since = clock()

    @property
    def due(self) -> bool:
        """Tells whether the task must let other tasks run now."""
        return self._clock() - self._since >= LONGEST_S

    def taken(self) -> None:
        """Notes that the task has waited, or has let other tasks run."""
        self._since = self._clock()
