"""What the log's owner tells the meter: of units of work, and of batches.

Counters count durable entries alone, so that a unit that a fenced owner had only folded is not counted. The gauges are
a sample of the folded state every :data:`SAMPLE_S`; an owner that leaves sets them to 0, because its successor sets its
own from then on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from kainite.log.format.entry import Entry, Fault, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.folded import FoldedLog
from kainite.observe import metric
from kainite.observe.ages import Ages
from kainite.observe.meter import Meter
from kainite.observe.metric import Metric

SAMPLE_S: Final = 5.0
"""Seconds between two samples of the state."""

_RESULTS: Final[dict[UnitStatus, Metric]] = {
    UnitStatus.COMMITTED: metric.UNITS_COMMITTED,
    UnitStatus.FAILED: metric.UNITS_FAILED,
    UnitStatus.DISCARDED: metric.UNITS_DISCARDED,
}
_STANDING: Final[dict[UnitStatus, Metric]] = {
    UnitStatus.IN_PROGRESS: metric.UNITS_IN_PROGRESS,
    UnitStatus.FAILED: metric.FAILED_UNITS,
    UnitStatus.BLOCKED: metric.BLOCKED_UNITS,
}


class UnitMetrics:
    """Tells a meter of the units and batches of an owner's log.

    Args:
        meter: takes the metrics.
        clock: seconds that only go forward.
    """

    def __init__(self, meter: Meter, clock: Callable[[], float]) -> None:
        self._meter = meter
        self._ages = Ages(clock)

    def durable(self, entries: Iterable[Entry], size: int, seconds: float) -> None:
        """Tells the meter of a batch that has become durable.

        Args:
            entries: the batch's entries.
            size: the entries' bytes, approximately.
            seconds: the seconds that the put took.
        """
        observe = self._meter.observe
        observe(metric.LOG_BATCHES)
        observe(metric.LOG_BYTES, size)
        observe(metric.LOG_PUT_TIME, seconds * 1000)
        for counted, value in _told(entries).items():
            observe(counted, value)

    def appended(self, seconds: float) -> None:
        """Tells the meter how long an append took until it was durable."""
        self._meter.observe(metric.LOG_APPEND_TIME, seconds * 1000)

    def sample(self, state: FoldedLog, behind: float = 0.0) -> None:
        """Tells the meter of the units that are not resolved.

        Args:
            state: the folded log.
            behind: how far the watermark is behind, seconds.
        """
        self._meter.observe(metric.WATERMARK_BEHIND, behind * 1000)
        self._ages.reached(state.next_id)
        running = (tid for tid, unit in state.units.items() if unit.status is UnitStatus.IN_PROGRESS)
        oldest = next(running, state.next_id) if state.statuses.get(UnitStatus.IN_PROGRESS) else state.next_id
        self._meter.observe(metric.OPEN_UNITS, len(state.open))
        self._meter.observe(metric.APPLY_PAUSED, int(state.operations.pause is not None))
        for status, standing in _STANDING.items():
            self._meter.observe(standing, state.statuses.get(status, 0))
        self._meter.observe(metric.OLDEST_UNIT, self._ages.of(oldest) * 1000)
        self._ages.forget(oldest)

    async def sample_on(self, sample: Callable[[], tuple[FoldedLog, float]]) -> None:
        """Samples until cancelled; then sets all gauges to 0.

        Args:
            sample: returns what :meth:`sample` takes.
        """
        try:
            while True:
                self.sample(*sample())
                await asyncio.sleep(SAMPLE_S)
        finally:
            others = metric.OPEN_UNITS, metric.OLDEST_UNIT, metric.WATERMARK_BEHIND, metric.APPLY_PAUSED
            for standing in (*_STANDING.values(), *others):
                self._meter.observe(standing, 0)


def _told(entries: Iterable[Entry]) -> dict[Metric, int]:
    """Returns the sums that entries add to the counters; makes no object an entry, since a batch has thousands."""
    units = deltas = failed = late = 0
    results: Counter[Metric] = Counter()
    for entry in entries:
        meta = entry.meta
        if isinstance(meta, UnitMeta):
            failed += meta.cause is not None or meta.fault is Fault.MISSING_NUMBER
            late += meta.fault is Fault.LATE
            if meta.fault is not Fault.MISSING_NUMBER:
                units, deltas = units + 1, deltas + meta.count
        elif isinstance(meta, StatusMeta):
            results.update(_RESULTS[outcome.status] for outcome in meta.outcomes if outcome.status in _RESULTS)
    results[metric.UNITS_FAILED] += failed
    results[metric.LATE_UNITS] += late
    told = {metric.UNITS_COLLECTED: units, metric.UNIT_DELTAS: deltas, **results}
    return {counted: value for counted, value in told.items() if value}
