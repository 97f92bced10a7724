"""Starts the publishers that the settings ask for, and the HTTP endpoint.

Nothing is imported for a publisher that the settings do not ask for, which saves start-up time and memory.

The metrics of every process (:data:`~kainite.observe.metric.PROCESS_METRICS`) are observed here, from its verdict:
every few seconds for CloudWatch, and at each scrape, so that ``/metrics`` never contradicts ``/health``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Protocol

import orjson

from kainite.aws import clients as aws
from kainite.base import display
from kainite.base.log_thread import lines_dropped
from kainite.base.redaction import redacted_tree
from kainite.observe import health, metric
from kainite.observe.health import HealthLimits, ShardHealth, WorkerFacts
from kainite.observe.meter import Meter, MetricSink
from kainite.observe.metric import DAEMON_METRICS, LOG_LINES_DROPPED, Metric
from kainite.observe.paths import HEALTH, LIVE, METRICS, READY, STDERR
from kainite.observe.shard_status import ShardStatus
from kainite.settings import MetricsLevel, Settings

if TYPE_CHECKING:
    from kainite.observe.http_endpoint import HttpResponse
    from kainite.observe.prometheus import Prometheus

_SAMPLE_S = 5.0
"""Seconds between two samples of what is not observed where it happens."""


def cloudwatch_level(settings: Settings) -> MetricsLevel:
    """Returns the level that is published to CloudWatch.

    It is the setting, or by default SUMMARY where Kinesis is AWS's own, and NONE where a double of Kinesis is read
    (LocalStack, tests) without one of CloudWatch. KCL's default is DETAILED, which costs a monthly fee for each shard
    and metric (amazon-kinesis-client-python#236).
    """
    if settings.metrics.level is not None:
        return settings.metrics.level
    double = settings.aws.kinesis_endpoint is not None and settings.aws.cloudwatch_endpoint is None
    return MetricsLevel.NONE if double else MetricsLevel.SUMMARY


class ProcessHealth(Protocol):
    """The report of a process on its health; :class:`~kainite.observe.health.HealthReport` is the daemon's."""

    @property
    def ready(self) -> bool: ...

    @property
    def healthy(self) -> bool: ...

    @property
    def problems(self) -> Sequence[str]: ...

    @property
    def shards(self) -> Sequence[ShardHealth]: ...

    def as_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Publishers:
    """What a process publishes.

    Attributes:
        metrics: the metrics that the process observes.
        level: the level of the metrics that go to CloudWatch.
        port: the endpoint's port; 0 takes any that is free; None means that there is no endpoint.
    """

    metrics: Sequence[Metric]
    level: MetricsLevel
    port: int | None


@asynccontextmanager
async def publishing(
    settings: Settings,
    statuses: Callable[[], Sequence[ShardStatus]],
    worker: Callable[[], WorkerFacts],
) -> AsyncIterator[Meter]:
    """Publishes what the daemon's meter is given, until the end of the ``with``.

    Args:
        settings: all settings of the application.
        statuses: returns the statuses of the shards that are held; called on the loop.
        worker: returns the worker's facts; called on the loop.

    Raises:
        SettingsError: the endpoint's address cannot be listened on.
    """
    limits = HealthLimits.of(settings)
    wanted = Publishers(DAEMON_METRICS, cloudwatch_level(settings), settings.metrics.port)
    async with publishing_of(settings, wanted, lambda: health.judge(statuses(), worker(), limits)) as meter:
        yield meter


@asynccontextmanager
async def publishing_of(
    settings: Settings, wanted: Publishers, verdict: Callable[[], ProcessHealth]
) -> AsyncIterator[Meter]:
    """Publishes what the meter of any process is given, until the end of the ``with``.

    Args:
        settings: all settings of the application.
        wanted: what the process publishes, and where.
        verdict: returns the process's health; called on the loop.

    Raises:
        SettingsError: the endpoint's address cannot be listened on.
    """
    sinks: list[MetricSink] = []
    async with AsyncExitStack() as stack:
        if wanted.level is not MetricsLevel.NONE:
            sinks.append(await _cloudwatch(stack, settings, wanted.level))
        if wanted.port is not None:
            from kainite.observe.prometheus import Prometheus

            labels = {"target": settings.target_name} if settings.target_name else {}
            prometheus = Prometheus(wanted.metrics, labels)
            sinks.append(await _endpoint(stack, prometheus, settings.metrics.host, wanted.port, verdict))
        meter = Meter(*sinks)
        if sinks:
            sampling = asyncio.create_task(_sample_on(meter, verdict))
            stack.callback(sampling.cancel)
        yield meter


async def _sample_on(meter: Meter, verdict: Callable[[], ProcessHealth]) -> None:
    counted = 0
    while True:
        await asyncio.sleep(_SAMPLE_S)
        dropped = lines_dropped()
        meter.observe(LOG_LINES_DROPPED, dropped - counted)
        counted = dropped
        _observe_verdict(meter, verdict())


def _observe_verdict(meter: Meter, judged: ProcessHealth) -> None:
    meter.observe(metric.HEALTHY, judged.healthy)
    meter.observe(metric.READY, judged.ready)
    meter.observe(metric.PROBLEMS, len(judged.problems))


async def _cloudwatch(stack: AsyncExitStack, settings: Settings, level: MetricsLevel) -> MetricSink:
    from kainite.observe.cloudwatch import CloudWatch

    leases = settings.leases
    sink = CloudWatch(
        lambda: aws.client("cloudwatch", settings.aws), leases.application, leases.worker_id, level, settings.metrics
    )
    await stack.enter_async_context(sink.running())
    return sink


async def _endpoint(
    stack: AsyncExitStack, prometheus: Prometheus, host: str, port: int, verdict: Callable[[], ProcessHealth]
) -> MetricSink:
    from kainite.observe.http_endpoint import HttpResponse, serving
    from kainite.observe.prometheus import CONTENT_TYPE

    def answer(good: bool, judged: ProcessHealth) -> HttpResponse:
        return _document(judged.as_json(), HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE)

    async def last_lines() -> HttpResponse:
        return _document({"shards": {shard.status.shard: _lines(shard.status) for shard in verdict().shards}})

    async def live() -> HttpResponse:
        return HttpResponse(b"the loop turns\n")

    async def ready() -> HttpResponse:
        judged = verdict()
        return answer(judged.ready, judged)

    async def healthy() -> HttpResponse:
        judged = verdict()
        return answer(judged.healthy, judged)

    async def scraped() -> HttpResponse:
        judged = verdict()
        _observe_verdict(Meter(prometheus), judged)
        # Thousands of shards take a moment to print: not on the loop that reads them.
        return HttpResponse(await asyncio.to_thread(prometheus.render, judged.shards), CONTENT_TYPE)

    pages = {HEALTH: healthy, READY: ready, LIVE: live, METRICS: scraped, STDERR: last_lines}
    await stack.enter_async_context(serving(pages, host, port))
    return prometheus


def _document(content: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    from kainite.observe.http_endpoint import HttpResponse

    body = display.as_json(redacted_tree(content), orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    return HttpResponse(body.encode(), "application/json", status)


def _lines(status: ShardStatus) -> dict[str, Any]:
    """Returns what the page of children's last lines has of a shard."""
    return {"state": status.state, "pid": status.pid, "lines": list(status.stderr_lines)}
