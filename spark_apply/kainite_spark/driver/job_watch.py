"""Watches a Spark job that is under way: how far it is, and when the driver stops waiting for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kainite.base.errors import SparkStalledError, SparkUnavailableError
from kainite_spark.driver.stall import Progress, Stall, StallWatch, cause_of_stall

if TYPE_CHECKING:
    from pyspark import SparkContext


@dataclass(frozen=True, slots=True)
class SparkLimits:
    """How long Spark may take; in seconds.

    Attributes:
        stall: the longest time for which no task of a Spark job runs.
        job: the longest time that a Spark job may take.
        grace: the time that a Spark job under way still gets when the apply job is told to stop.
    """

    stall: float = 60.0
    job: float = 3_600.0
    grace: float = 10.0


class JobWatch:
    """Looks at a Spark job that is under way, and ends the waiting for it when it has taken too long.

    Args:
        limits: how long Spark may take.
        stop: set to stop the apply job.
        progress: returns the job's progress.
        tell: called with the reason when a job stalls, and again each time the stall has doubled.
    """

    def __init__(
        self,
        limits: SparkLimits,
        stop: threading.Event,
        progress: Callable[[], Progress],
        tell: Callable[[str], None],
    ) -> None:
        self._limits = limits
        self._stop = stop
        self._progress = progress
        self._tell = tell
        self._stall = StallWatch(limits.stall)
        self._tell_at = 0.0
        self._stopping: float | None = None

    def look(self, seconds: float) -> None:
        """Looks at the Spark job once.

        Raises:
            SparkUnavailableError: the job took too long, or the apply job stops.
            SparkStalledError: no task of the job has run for too long.
        """
        if self._stop.is_set() and self._stopping is None:
            self._stopping = seconds
        if self._stopping is not None and seconds - self._stopping >= self._limits.grace:
            raise SparkUnavailableError(f"a Spark job was given up {self._limits.grace:.0f} s after the stop")
        if seconds >= self._limits.job:
            raise SparkUnavailableError(f"a Spark job was given up after {seconds:.0f} s (applyJobLimitMillis)")
        progress = self._progress()
        verdict = self._stall.see(seconds, progress)
        if verdict in (Stall.TOLD, Stall.OVER) and (verdict is Stall.OVER or seconds >= self._tell_at):
            stalled = self._stall.stalled(seconds)
            self._tell_at = seconds + stalled
            cause = cause_of_stall(progress, stalled)
            if verdict is Stall.OVER:
                raise SparkStalledError(f"{cause} (applyStallMillis ends the apply job)")
            self._tell(cause)


def progress_of(context: SparkContext, group: str) -> Progress:
    """Returns the progress of the jobs of a group."""
    tracker = context.statusTracker()
    running = completed = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            if (found := tracker.getStageInfo(stage)) is not None:
                running += found.numActiveTasks
                completed += found.numCompletedTasks + found.numFailedTasks
    return Progress(running, completed, _executors(context))


def _executors(context: SparkContext) -> int | None:
    """Returns the number of executors; None for a local master, whose driver runs the tasks."""
    if str(context.master).startswith("local"):
        return None
    # PySpark has no public way to ask; the driver is among them.
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1  # noqa: SLF001
