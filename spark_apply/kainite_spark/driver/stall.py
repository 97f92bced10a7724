"""Judges whether a Spark job makes progress: Spark itself waits without a message and without a limit. Pure.

A job *stalls* while none of its tasks runs and none completes: no executor is there, all cores are another
application's, the master has forgotten the application. A stall that ends leaves nothing behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

TELL_S: Final = 5.0
"""Seconds after which a stall is reported."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Spark's knowledge of a job.

    Attributes:
        running: how many tasks run.
        completed: how many tasks have completed, failed ones included.
        executors: how many executors the application has; None where the number is unknown.
    """

    running: int
    completed: int
    executors: int | None = None


class Stall(Enum):
    """The verdict on a job."""

    NONE = auto()
    SHORT = auto()  # shorter than TELL_S
    TOLD = auto()
    OVER = auto()  # the limit has passed


class StallWatch:
    """Watches one job.

    Args:
        limit: seconds that a stall may take.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._completed = 0
        self._since = 0.0

    def see(self, seconds: float, progress: Progress) -> Stall:
        """Returns the verdict.

        Args:
            seconds: the time since the job was begun.
            progress: the job's progress at that time.
        """
        if progress.running or progress.completed != self._completed:
            self._completed, self._since = progress.completed, seconds
            return Stall.NONE
        stalled = self.stalled(seconds)
        if stalled >= self._limit:
            return Stall.OVER
        return Stall.TOLD if stalled >= TELL_S else Stall.SHORT

    def stalled(self, seconds: float) -> float:
        """Returns for how many seconds the job has made no progress."""
        return seconds - self._since


def cause_of_stall(progress: Progress, seconds: float) -> str:
    """Returns the probable cause of a stall, in words."""
    if progress.executors == 0:
        return f"Spark has had no executors for {seconds:.0f} s: are the master and its workers up?"
    return (
        f"no task of a Spark job has run for {seconds:.0f} s: another application may have all cores, or the master "
        "has lost this one"
    )
