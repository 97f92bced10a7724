"""The metrics as Prometheus reads them.

The metrics have a registry of their own, with figures of the process. A shard's series outlive the shard by one
scrape, so that its last figures are seen and the number of series stays bounded by the shards held.
"""

from __future__ import annotations

import platform
import threading
from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import prometheus_client as client

import kainite
from kainite.observe.health import Health, ShardHealth
from kainite.observe.metric import DAEMON_METRICS, Metric, MetricKind, MetricUnit

CONTENT_TYPE = client.CONTENT_TYPE_LATEST
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
"""Seconds, from a child that echoes to a child that takes minutes for a batch."""

Family = client.Counter | client.Gauge | client.Histogram


class Prometheus:
    """A sink that is scraped; :meth:`observe` and :meth:`render` may be called from any thread.

    Args:
        metrics: the metrics that the process publishes.
        labels: what each of its series has besides.
    """

    def __init__(self, metrics: Sequence[Metric] = DAEMON_METRICS, labels: Mapping[str, str] | None = None) -> None:
        self._registry = client.CollectorRegistry()
        self._labelled = _Labelled(self._registry, labels or {})
        self._families = {metric: _family(metric, self._registry) for metric in metrics}
        self._series: dict[tuple[Metric, str | None], Family] = {}
        self._beginning_and_ending = threading.Lock()
        self._shards = client.Gauge("kainite_shards", "Shards held, by health.", ["health"], registry=self._registry)
        self._silent = client.Gauge(
            "kainite_child_silent_seconds", "Time for which a child that was asked is silent.", ["shard"],
            registry=self._registry,
        )  # fmt: skip
        self._standing = client.Gauge(
            "kainite_shard_standstill_seconds",
            "Time for which a shard has not got on while its child was not asked, whatever the reason.", ["shard"],
            registry=self._registry,
        )  # fmt: skip
        self._throttled = client.Gauge(
            "kainite_shard_throttled_seconds", "Time for which a shard's reading is throttled.", ["shard"],
            registry=self._registry,
        )  # fmt: skip
        client.Info("kainite_build", "Versions of Kainite and Python.", registry=self._registry).info(
            {"version": kainite.__version__, "python": platform.python_version()}
        )
        client.ProcessCollector(registry=self._registry)

    def observe(self, metric: Metric, value: float, shard: str | None) -> None:
        key = (metric, shard if metric.per_shard else None)
        series = self._series.get(key) or self._begin(key)
        if metric.unit is MetricUnit.MILLIS:
            value /= 1000
        match series:
            case client.Counter():
                series.inc(value)
            case client.Gauge():
                series.set(value)
            case _:
                series.observe(value)

    def render(self, shards: Sequence[ShardHealth]) -> bytes:
        """Returns the metrics in Prometheus's text format; ends the series of all shards but the given ones.

        Args:
            shards: the shards that are held at the moment.
        """
        tally = Tally(shard.health for shard in shards)
        for health in Health:
            self._shards.labels(health.value).set(tally[health])
        for family in (self._silent, self._standing, self._throttled):
            family.clear()
        for status in (shard.status for shard in shards):
            _set(self._silent, status.shard, status.silent)
            _set(self._standing, status.shard, status.standstill.seconds if status.standstill else None)
            _set(self._throttled, status.shard, status.throttled)
        page = client.generate_latest(self._labelled)
        self._forget_all_but({shard.status.shard for shard in shards})
        return page

    def _begin(self, key: tuple[Metric, str | None]) -> Family:
        metric, shard = key
        family = self._families[metric]
        with self._beginning_and_ending:
            return self._series.setdefault(key, family.labels(shard or "") if metric.per_shard else family)

    def _forget_all_but(self, live: set[str]) -> None:
        with self._beginning_and_ending:
            gone = [key for key in self._series if key[0].per_shard and key[1] not in live]
            for metric, shard in gone:
                del self._series[metric, shard]
                self._families[metric].remove(shard or "")


@dataclass(frozen=True, slots=True)
class _Labelled(client.registry.Collector):
    """The series of a registry, each with labels besides its own."""

    registry: client.CollectorRegistry
    labels: Mapping[str, str]

    def collect(self) -> Iterator[client.Metric]:
        for family in self.registry.collect():
            family.samples = [each._replace(labels={**self.labels, **each.labels}) for each in family.samples]
            yield family


def _set(family: client.Gauge, shard: str, seconds: float | None) -> None:
    if seconds is not None:
        family.labels(shard).set(seconds)


def _family(metric: Metric, registry: client.CollectorRegistry) -> Family:
    labels = ["shard"] if metric.per_shard else []
    match metric.kind:
        case MetricKind.COUNTER:
            return client.Counter(metric.series, metric.help, labels, registry=registry)
        case MetricKind.GAUGE:
            return client.Gauge(metric.series, metric.help, labels, registry=registry)
        case MetricKind.TIMING:
            return client.Histogram(metric.series, metric.help, labels, registry=registry, buckets=BUCKETS)
