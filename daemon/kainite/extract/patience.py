"""Failures in a row: how long to wait after each, and when to give up; pure.

State: the number of failures since something succeeded. A crash forgets it, which costs some more tries.
"""

from __future__ import annotations

from kainite.base.errors import KainiteError, SourceError
from kainite.base.retry import Backoff


class Patience:
    """Counts failures.

    Args:
        backoff: seconds after the first failure; each further one doubles it.
        backoff_max: the longest pause, seconds.
        tries: failures in a row that are too many.
    """

    def __init__(self, backoff: float, backoff_max: float, tries: int) -> None:
        self._backoff = Backoff.doubling(backoff, backoff_max)
        self._tries = tries
        self._failures = 0

    def failed(self, error: KainiteError) -> float:
        """Counts a failure; returns the seconds to wait before the next try.

        Raises:
            SourceError: there were too many failures in a row.
        """
        self._failures += 1
        if self._failures >= self._tries:
            raise SourceError(f"given up after {self._failures} failures in a row (extractorTries): {error}") from error
        return self._backoff.after(self._failures)

    def succeeded(self) -> None:
        """Begins to count anew."""
        self._failures = 0
