"""Adds observations up to CloudWatch's statistic sets, and chooses the published ones. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kainite.observe.metric import Metric
from kainite.settings import MetricsLevel

ALL_DIMENSIONS = "ALL"
_PUBLISHED = {
    MetricsLevel.NONE: frozenset[MetricsLevel](),
    MetricsLevel.SUMMARY: frozenset({MetricsLevel.SUMMARY}),
    MetricsLevel.DETAILED: frozenset({MetricsLevel.SUMMARY, MetricsLevel.DETAILED}),
}


@dataclass(slots=True)
class Statistics:
    """A StatisticSet in the making; at least one observation."""

    count: int
    total: float
    least: float
    most: float

    @classmethod
    def of(cls, value: float) -> Statistics:
        return cls(1, value, value, value)

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        if value < self.least:
            self.least = value
        if value > self.most:
            self.most = value

    def merge(self, other: Statistics) -> None:
        self.count += other.count
        self.total += other.total
        self.least = min(self.least, other.least)
        self.most = max(self.most, other.most)


def is_published(metric: Metric, level: MetricsLevel) -> bool:
    """Tells whether a level publishes the metric: its own metrics, and those of the levels above it.

    As KCL's ``FilteringMetricsScope`` does (docs/kcl.md, *Metrics*).
    """
    return metric.level in _PUBLISHED[level]


def dimensions(metric: Metric, shard: str | None, worker: str, enabled: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Returns the dimensions of an observation, as names and values.

    Args:
        metric, shard: what was observed.
        worker: this worker's id.
        enabled: ``metricsEnabledDimensions``; the operation is always on (KCL's METRICS_ALWAYS_ENABLED_DIMENSIONS).
    """
    every = ALL_DIMENSIONS in enabled
    found = [("Operation", metric.operation)]
    if metric.per_shard and shard is not None and (every or "ShardId" in enabled):
        found.append(("ShardId", shard))
    if metric.per_worker and (every or "WorkerIdentifier" in enabled):
        found.append(("WorkerIdentifier", worker))
    return tuple(found)
