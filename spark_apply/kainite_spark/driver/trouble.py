"""Micro-batches that failed in a row: which of them are tried again, after which pause, and what is told of it.

A problem of one micro-batch is none of a unit's fault: the store, the target or Spark's executors are away. It passes,
or ends the apply job.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime

from kainite.base.errors import KainiteError, SparkStalledError, SparkUnavailableError
from kainite.base.logs import event
from kainite_spark.driver import patience
from kainite_spark.driver.job_health import JobHealth
from kainite_spark.plan.backlog import Backlog

_LOG = logging.getLogger(__name__)

SPARK_TRIES = 5
"""The number of failed Spark jobs in a row at which the apply job takes the Spark session for broken, and ends."""

TELL_EVERY_S = 60.0
"""The least time, in seconds, between two notes in the log of why units wait."""


class MicroBatchTrouble:
    """The micro-batches that have failed in a row.

    Args:
        health: is told what is waited for.
        stop: ends a wait.
    """

    def __init__(self, health: JobHealth, stop: threading.Event) -> None:
        self._health = health
        self._stop = stop
        self._failures = 0
        self._since = ""
        self._told = 0.0

    @property
    def lasts(self) -> bool:
        """Tells whether the latest micro-batch has failed."""
        return self._failures > 0

    def passed(self) -> None:
        """Notes that a micro-batch ran without a problem."""
        self._failures = 0

    def meet(self, problem: KainiteError, backlog: Backlog, waits: Iterable[int]) -> None:
        """Waits after a problem that may pass; raises any other problem.

        Args:
            problem: the problem of a micro-batch.
            backlog: is told why units wait.
            waits: the units of the micro-batch whose outcomes are unknown.
        """
        self._tell(problem, backlog, waits)
        self._failures += 1
        lost_executor = (
            isinstance(problem, SparkUnavailableError)
            and not isinstance(problem, SparkStalledError)
            and self._failures < SPARK_TRIES
        )
        if not (problem.retryable or lost_executor):
            raise problem
        pause = patience.BACKOFF.after(self._failures)
        self._health.waits_for(problem)
        event(_LOG, logging.WARNING, "micro-batch to be tried again", cause=problem, pause=pause)
        self._stop.wait(pause)

    def _tell(self, problem: KainiteError, backlog: Backlog, waits: Iterable[int]) -> None:
        """Notes why units wait, once the trouble has lasted for more than one micro-batch, and then now and then."""
        now = time.monotonic()
        if not self._failures:
            self._since, self._told = datetime.now(UTC).isoformat(timespec="seconds"), now
        elif self._failures == 1 or now - self._told >= TELL_EVERY_S:
            self._told = now
            backlog.waits_for(waits, f"waits since {self._since}: {problem}")
