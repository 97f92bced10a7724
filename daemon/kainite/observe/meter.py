"""Hands observations to the sinks that publish them. Observing is cheap and never fails."""

from __future__ import annotations

from typing import Protocol

from kainite.observe.metric import Metric


class MetricSink(Protocol):
    """A publisher; called on the event loop and from threads, and must not block."""

    def observe(self, metric: Metric, value: float, shard: str | None) -> None: ...


class Meter:
    """Passes each observation to all of ``sinks``."""

    def __init__(self, *sinks: MetricSink) -> None:
        self._sinks = sinks

    def observe(self, metric: Metric, value: float = 1, shard: str | None = None) -> None:
        """Notes one observation.

        Args:
            metric: what was measured.
            value: the value, in the metric's unit.
            shard: for metrics of a shard, its id.
        """
        for sink in self._sinks:
            sink.observe(metric, value, shard)


SILENT = Meter()
