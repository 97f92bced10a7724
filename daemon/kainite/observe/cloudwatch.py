"""The metrics as KCL publishes them to CloudWatch: same namespace, names, dimensions and levels.

Observations are added up for each metric and its dimensions; a thread sends the sums every
``metricsBufferTimeMillis``. Sums that CloudWatch does not accept are lost, as in KCL, and logged once until it accepts
sums again: metrics never hold up the records. At most ``metricsMaxQueueSize`` sums are held.

The thread is a daemon thread of its own: making the client does not hold up the start, and a missing answer does
not hold up the end of the process, which waits for the event loop's threads.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kainite.base.logs import event
from kainite.observe.metric import METRICS, Metric
from kainite.observe.statistics import Statistics, dimensions, is_published
from kainite.settings import MetricsLevel, MetricsSettings

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_cloudwatch.type_defs import MetricDatumTypeDef

logger = logging.getLogger(__name__)

BATCH = 500
"""Metrics in a call: half of CloudWatch's 1,000, and so below its 1 MB whatever the names."""

LAST_FLUSH_S = 5.0

Key = tuple[Metric, tuple[tuple[str, str], ...]]


class CloudWatch:
    """A sink; :meth:`observe` may be called from any thread and never waits for the network.

    Args:
        connect: makes the client, in the publishing thread.
        namespace: the application's name.
        worker: this worker's id.
        level: the level of the metrics that are published.
        settings: how often and how many sums are sent, and with which dimensions.
    """

    def __init__(
        self,
        connect: Callable[[], CloudWatchClient],
        namespace: str,
        worker: str,
        level: MetricsLevel,
        settings: MetricsSettings,
    ) -> None:
        self._connect = connect
        self._namespace = namespace
        self._worker = worker
        self._published = frozenset(metric for metric in METRICS if is_published(metric, level))
        self._settings = settings
        self._sums: dict[tuple[Metric, str | None], Statistics] = {}
        self._adding = threading.Lock()
        self._dropped = 0
        self._closing = threading.Event()
        self._client: CloudWatchClient | None = None
        self._failing = False

    def observe(self, metric: Metric, value: float, shard: str | None) -> None:
        if metric not in self._published:
            return
        key = (metric, shard)
        with self._adding:
            sums = self._sums.get(key)
            if sums is not None:
                sums.add(value)
            elif len(self._sums) < self._settings.queue_size:
                self._sums[key] = Statistics.of(value)
            else:
                self._dropped += 1

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Publishes until the end of the ``with``; sends the remaining sums then, within :data:`LAST_FLUSH_S`."""
        thread = threading.Thread(target=self._run, name="cloudwatch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._closing.set()
            await asyncio.to_thread(thread.join, LAST_FLUSH_S)
            if thread.is_alive():
                event(logger, logging.WARNING, "last metrics not published: CloudWatch does not answer")

    def flush(self) -> None:
        """Sends the sums. Logs what goes wrong, and raises nothing."""
        with self._adding:
            sums, self._sums = self._sums, {}
            dropped, self._dropped = self._dropped, 0
        if dropped:
            event(logger, logging.WARNING, "metrics dropped: more of them than metricsMaxQueueSize",
                  observations=dropped, limit=self._settings.queue_size)  # fmt: skip
        if not sums:
            return
        try:
            for batch in self._batches(sums):
                self._put(batch)
        except Exception as error:  # boto3's, urllib3's and OpenSSL's errors; none of them may cost a record
            self._note(error)
        else:
            self._note(None)

    def _run(self) -> None:
        while not self._closing.wait(self._settings.buffer_time):
            self.flush()
        self.flush()

    def _put(self, batch: list[MetricDatumTypeDef]) -> None:
        if self._client is None:
            self._client = self._connect()
        self._client.put_metric_data(Namespace=self._namespace, MetricData=batch)

    def _batches(self, sums: dict[tuple[Metric, str | None], Statistics]) -> Iterator[list[MetricDatumTypeDef]]:
        data = [_datum(key, added) for key, added in self._merged(sums).items()]
        for start in range(0, len(data), BATCH):
            yield data[start : start + BATCH]

    def _merged(self, sums: dict[tuple[Metric, str | None], Statistics]) -> dict[Key, Statistics]:
        """Adds up the sums of shards that no dimension tells apart."""
        merged: dict[Key, Statistics] = {}
        for (metric, shard), added in sums.items():
            key = (metric, dimensions(metric, shard, self._worker, self._settings.dimensions))
            before = merged.setdefault(key, added)
            if before is not added:
                before.merge(added)
        return merged

    def _note(self, error: Exception | None) -> None:
        """Logs that publishing fails, or works again, when that changes."""
        if error is not None and not self._failing:
            event(logger, logging.WARNING, "metrics not published: the worker goes on without",
                  namespace=self._namespace, error=error)  # fmt: skip
        elif error is None and self._failing:
            event(logger, logging.INFO, "metrics published again", namespace=self._namespace)
        self._failing = error is not None


def _datum(key: Key, added: Statistics) -> MetricDatumTypeDef:
    metric, found = key
    return {
        "MetricName": metric.name,
        "Dimensions": [{"Name": name, "Value": value} for name, value in found],
        "Unit": metric.unit.value,
        "StatisticValues": {
            "SampleCount": float(added.count),
            "Sum": float(added.total),  # CloudWatch takes numbers only: True becomes 1
            "Minimum": float(added.least),
            "Maximum": float(added.most),
        },
    }
