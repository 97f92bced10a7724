"""A sink for metrics that adds counters up."""

from __future__ import annotations

from collections import Counter, defaultdict

from kainite.observe.metric import Metric, MetricKind


class Sums:
    """Adds counters up, and keeps the latest value of the others."""

    def __init__(self) -> None:
        self.values: defaultdict[Metric, float] = defaultdict(float)
        self.seen: Counter[Metric] = Counter()

    def observe(self, observed: Metric, value: float, shard: str | None) -> None:
        assert shard is None
        self.seen[observed] += 1
        self.values[observed] = value + (self.values[observed] if observed.kind is MetricKind.COUNTER else 0)
