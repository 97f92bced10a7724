"""Watches how long transactions of several targets have been prepared, for the apply job's health and metrics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from kainite.base.errors import KainiteError
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job_metrics import JobMetrics
from kainite_spark.targets.atomic.target import AtomicTarget

LOOK_EVERY_S: Final = 5.0
"""The least seconds between two looks."""


class PreparedWatch:
    """Looks at the targets now and then; does nothing where transactions are not prepared.

    Args:
        environment: has the target, and the job's health.
        metrics: of the job.
        clock: returns seconds that only go forward.
    """

    def __init__(self, environment: ApplyEnvironment, metrics: JobMetrics, clock: Callable[[], float]) -> None:
        self._environment = environment
        self._metrics = metrics
        self._clock = clock
        self._looked = -math.inf

    def look(self) -> None:
        """Sets the age of the oldest prepared transaction; targets that do not answer are passed over."""
        target = self._environment.target
        if not isinstance(target, AtomicTarget) or self._clock() < self._looked + LOOK_EVERY_S:
            return
        oldest = max((self._oldest(target, name) for name in target.targets), default=0.0)
        self._looked = self._clock()
        self._environment.health.prepared = oldest
        self._metrics.prepared(oldest)

    def _oldest(self, target: AtomicTarget, name: str) -> float:
        try:
            parts = target.prepared_in(name, self._environment.ledger)
        except KainiteError:
            return 0.0
        return max((part.age for part in parts), default=0.0)
