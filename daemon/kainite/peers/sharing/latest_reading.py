"""The latest report of how far this process's shards are read, with ages as of now."""

from __future__ import annotations

from collections.abc import Callable

from kainite.log.client import ReadingReport
from kainite.log.collecting.waiting import NEAR_S


class LatestReading:
    """The latest report.

    Args:
        clock: returns seconds since boot.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.source: Callable[[], ReadingReport | None] | None = None
        """Reports how far the shards are read now, None where it cannot tell; called for each report."""
        self._report: tuple[ReadingReport, float] | None = None

    def note(self, report: ReadingReport) -> None:
        """Takes a report."""
        self._report = report, self.clock()

    def now(self) -> ReadingReport | None:
        """Returns the latest report with ages as of now; None if it is old: the shards may be others by now."""
        if self.source is not None and (now := self.source()) is not None:
            self._report = now, self.clock()
        if self._report is None:
            return None
        report, at = self._report
        since = self.clock() - at
        if since > NEAR_S:
            return None
        return report.aged(since)
