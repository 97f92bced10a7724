"""Hands observations to whoever publishes them. Observing costs next to nothing and never fails."""

from __future__ import annotations

from typing import Protocol

from kainite.observe.metric import Metric


class Sink(Protocol):
    """A publisher; called on the event loop and from threads, and must not block."""

    def observe(self, metric: Metric, value: float, shard: str | None) -> None: ...


class Meter:
    """What is measured goes to all of ``sinks``; without any, nowhere."""

    def __init__(self, *sinks: Sink) -> None:
        self._sinks = sinks

    def observe(self, metric: Metric, value: float = 1, shard: str | None = None) -> None:
        """Note one observation.

        Args:
            metric: what was measured.
            value: in the metric's unit.
            shard: for metrics of a shard, its id.
        """
        for sink in self._sinks:
            sink.observe(metric, value, shard)


SILENT = Meter()
