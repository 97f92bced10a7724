"""What the apply job tells the meter: units, micro-batches, and how far it is behind.

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
        clock: seconds that only go forward.
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
        """Tells of a micro-batch's tasks."""
        self._meter.observe(metric.MICRO_BATCHES)
        for result in results:
            self._meter.observe(metric.APPLY_GROUPS, result.groups)
            self._meter.observe(metric.GROUPS_SPLIT, result.splits)

    def resolved(self, outcomes: Iterable[Outcome]) -> None:
        """Tells of outcomes that are durable."""
        counts = Counter(outcome.status for outcome in outcomes)
        for status, counted in _RESULTS.items():
            if counts[status]:
                self._meter.observe(counted, counts[status])

    def followed(self, followed: bool) -> None:
        """Tells whether the log's owner sends what becomes durable."""
        self._meter.observe(metric.APPLY_FOLLOWED, int(followed))

    def sample(self, backlog: Backlog, next_id: int) -> None:
        """Tells what is not resolved.

        Args:
            backlog: the units.
            next_id: transaction id of the entry that is read next.
        """
        self._ages.reached(next_id)
        oldest = backlog.oldest_waiting
        self._meter.observe(metric.APPLY_WAITING, backlog.waiting)
        self._meter.observe(metric.APPLY_DELAYED, backlog.delayed)
        self._meter.observe(metric.APPLY_FAILED, len(backlog.failed))
        self._meter.observe(metric.APPLY_BLOCKED, backlog.blocked)
        self._meter.observe(metric.APPLY_LAG, 0.0 if oldest is None else self._ages.of(oldest) * 1000)
        self._ages.forget(next_id if oldest is None else oldest)
