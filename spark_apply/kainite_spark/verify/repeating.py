"""Compares again and again: ``kainite verify --every``, a duty of the fleet.

The time of the next comparison follows from the latest result, which stands in the target. So a duty that is moved or
started again neither compares at once nor waits for a whole interval. A comparison that comes to no result is made
again after :data:`AGAIN_S`; the reason stands beside the latest result, whose age goes on to grow.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from kainite.base.errors import KainiteError, StoppedError
from kainite.base.logs import event
from kainite.replicate.verify_report import VerifyReport, summary_of

_LOG = logging.getLogger(__name__)

AGAIN_S: Final = 300.0
"""Seconds to the next try after one without a result, unless the interval is shorter."""


class RepeatedComparison(Protocol):
    """A comparison of all tables, with its results in the target; each call opens what it needs."""

    def age(self) -> float | None:
        """Returns the seconds since the latest result; None without one. Raises KainiteError."""

    def compare(self) -> VerifyReport:
        """Compares, and keeps the result; raises KainiteError."""

    def note(self, every: float, trouble: str | None) -> None:
        """Keeps the interval, and why the latest try came to no result; raises KainiteError."""


@dataclass(slots=True)
class Repeating:
    """Compares again and again.

    Attributes:
        comparison: the comparison.
        every: seconds from one result to the next comparison.
        wait: waits so many seconds; returns whether to end.
    """

    comparison: RepeatedComparison
    every: float
    wait: Callable[[float], bool]

    def run(self) -> None:
        """Compares until ``wait`` says that it is to end."""
        event(_LOG, logging.INFO, "comparisons started", every=self.every)
        left = self._left()
        while not self.wait(left):
            left = self._round()

    def _left(self) -> float:
        """Returns the seconds to the first comparison."""
        try:
            self.comparison.note(self.every, None)
            age = self.comparison.age()
        except KainiteError as error:
            event(_LOG, logging.WARNING, "comparison failed", error=error)
            return 0.0
        return 0.0 if age is None else max(0.0, self.every - age)

    def _round(self) -> float:
        """Makes a comparison; returns the seconds to the next one."""
        try:
            report = self.comparison.compare()
        except StoppedError:
            return 0.0
        except KainiteError as error:
            event(_LOG, logging.WARNING, "comparison failed", error=error)
            self._note(str(error))
            return min(AGAIN_S, self.every)
        level = logging.INFO if report.passed else logging.ERROR
        event(_LOG, level, "compared", verdict=report.verdict, result=summary_of(report.outcome()))
        self._note(None)
        return self.every

    def _note(self, trouble: str | None) -> None:
        try:
            self.comparison.note(self.every, trouble)
        except KainiteError as error:
            event(_LOG, logging.WARNING, "comparison failed", error=error)
