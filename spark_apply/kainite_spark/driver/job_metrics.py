"""The apply job's metrics: units, micro-batches, and how far the job is behind.

All ages are by the job's own clock: an entry of the log counts as reached when this job has read it.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kainite.log.format.entry import Outcome, UnitStatus
from kainite.observe import metric
from kainite.observe.ages import Ages
from kainite.observe.meter import SILENT, Meter
from kainite.observe.metric import Metric
from kainite_spark.plan.backlog import Backlog
from kainite_spark.plan.micro_batch import TaskResult

_RESULTS: Final = {UnitStatus.COMMITTED: metric.APPLIED_UNITS, UnitStatus.FAILED: metric.APPLY_FAILURES}


class JobMetrics:
    """Observes an apply job.

    Args:
        meter: takes the metrics.
        clock: returns seconds that only go forward.
    """

    def __init__(self, meter: Meter = SILENT, clock: Callable[[], float] = time.monotonic) -> None:
        self._meter = meter
        self._clock = clock
        self._ages = Ages(clock)

    @contextlib.contextmanager
    def timing(self, stage: Metric) -> Iterator[None]:
        """Measures a stage, however it ends."""
        began = self._clock()
        try:
            yield
        finally:
            self._meter.observe(stage, (self._clock() - began) * 1000)

    def ran(self, results: Iterable[TaskResult]) -> None:
        """Counts the results of a micro-batch's tasks."""
        self._meter.observe(metric.MICRO_BATCHES)
        for result in results:
            self._meter.observe(metric.APPLY_GROUPS, result.groups)
            self._meter.observe(metric.GROUPS_SPLIT, result.splits)

    def resolved(self, outcomes: Iterable[Outcome]) -> None:
        """Counts outcomes that are durable."""
        counts = Counter(outcome.status for outcome in outcomes)
        for status, counted in _RESULTS.items():
            if counts[status]:
                self._meter.observe(counted, counts[status])

    def followed(self, followed: bool) -> None:
        """Sets the gauge of whether the log's owner sends its durable batches."""
        self._meter.observe(metric.APPLY_FOLLOWED, int(followed))

    def paused(self, paused: bool) -> None:
        """Sets the gauge of whether a person has paused applying."""
        self._meter.observe(metric.APPLY_PAUSED, int(paused))

    def prepared(self, seconds: float) -> None:
        """Sets the gauge of the age of the oldest transaction of several targets that is prepared."""
        self._meter.observe(metric.APPLY_PREPARED_AGE, seconds * 1000)

    def sample(self, backlog: Backlog, next_id: int, everywhere_below: int | None = None) -> None:
        """Sets the gauges of the unresolved units.

        Args:
            backlog: the unresolved units.
            next_id: the transaction id of the entry that is read next.
            everywhere_below: the common mark of several targets; None where there is one target.
        """
        self._ages.reached(next_id)
        oldest = backlog.oldest_waiting
        self._meter.observe(metric.APPLY_WAITING, backlog.waiting)
        self._meter.observe(metric.APPLY_DELAYED, backlog.delayed)
        self._meter.observe(metric.APPLY_FAILED, len(backlog.failed))
        self._meter.observe(metric.APPLY_BLOCKED, backlog.blocked)
        self._meter.observe(metric.APPLY_LAG, 0.0 if oldest is None else self._ages.of(oldest) * 1000)
        kept = next_id if oldest is None else oldest
        if everywhere_below is not None:
            kept = min(kept, everywhere_below)
            behind = self._ages.of(everywhere_below) if everywhere_below < next_id else 0.0
            self._meter.observe(metric.COMMON_MARK_LAG, behind * 1000)
        self._ages.forget(kept)
