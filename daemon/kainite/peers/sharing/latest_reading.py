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
        self.read_again: Callable[[], None] | None = None
        """Makes readers read sooner that do not know whether they have read all; called while a unit waits for that."""
        self._report: tuple[ReadingReport, float] | None = None

    def note(self, report: ReadingReport) -> None:
        """Takes a report."""
        self._report = report, self.clock()

    def now(self, awaited: bool = False) -> ReadingReport | None:
        """Returns the latest report with ages as of now; None if it is old: the shards may be others by now.

        Args:
            awaited: whether a unit of work waits for nothing but the reading.
        """
        if awaited and self.read_again is not None:
            self.read_again()
        if self.source is not None and (now := self.source()) is not None:
            self._report = now, self.clock()
        if self._report is None:
            return None
        report, at = self._report
        since = self.clock() - at
        if since > NEAR_S:
            return None
        return report.aged(since)
