"""Starts the publishers that the settings ask for, and the HTTP endpoint.

Nothing is imported for a publisher that the settings do not ask for, which saves start-up time and memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus

import orjson

from kainite.aws import clients as aws
from kainite.base import display
from kainite.base.redaction import redacted_tree
from kainite.observe import health
from kainite.observe.health import HealthLimits, HealthReport, WorkerFacts
from kainite.observe.meter import Meter, Sink
from kainite.observe.shard_status import ShardStatus
from kainite.settings import MetricsLevel, MetricsSettings, Settings

LIVE, READY, HEALTH, METRICS = "/live", "/ready", "/health", "/metrics"


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


@asynccontextmanager
async def publishing(
    settings: Settings,
    statuses: Callable[[], Sequence[ShardStatus]],
    worker: Callable[[], WorkerFacts],
) -> AsyncIterator[Meter]:
    """Publishes what the meter is given until the end.

    Args:
        settings: the whole of them.
        statuses: of the shards held at the moment; called on the loop.
        worker: the worker's facts of the moment; called on the loop.

    Raises:
        SettingsError: the endpoint's address cannot be listened on.
    """
    limits = HealthLimits.of(settings)
    sinks: list[Sink] = []
    async with AsyncExitStack() as stack:
        level = cloudwatch_level(settings)
        if level is not MetricsLevel.NONE:
            sinks.append(await _cloudwatch(stack, settings, level))
        if settings.metrics.port is not None:
            sinks.append(await _endpoint(stack, settings.metrics, lambda: health.judge(statuses(), worker(), limits)))
        yield Meter(*sinks)


async def _cloudwatch(stack: AsyncExitStack, settings: Settings, level: MetricsLevel) -> Sink:
    from kainite.observe.cloudwatch import CloudWatch

    leases = settings.leases
    sink = CloudWatch(
        lambda: aws.client("cloudwatch", settings.aws), leases.application, leases.worker_id, level, settings.metrics
    )
    await stack.enter_async_context(sink.running())
    return sink


async def _endpoint(stack: AsyncExitStack, settings: MetricsSettings, verdict: Callable[[], HealthReport]) -> Sink:
    from kainite.observe.http_endpoint import Answer, serving
    from kainite.observe.prometheus import CONTENT_TYPE, Prometheus

    prometheus = Prometheus()

    def answer(good: bool, judged: HealthReport) -> Answer:
        status = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
        body = display.as_json(redacted_tree(judged.as_json()), orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        return Answer(body.encode(), "application/json", status)

    async def live() -> Answer:
        return Answer(b"the daemon's loop turns\n")

    async def ready() -> Answer:
        judged = verdict()
        return answer(judged.ready, judged)

    async def healthy() -> Answer:
        judged = verdict()
        return answer(judged.healthy, judged)

    async def metrics() -> Answer:
        # Thousands of shards take a moment to print: not on the loop that reads them.
        return Answer(await asyncio.to_thread(prometheus.render, verdict().shards), CONTENT_TYPE)

    pages = {HEALTH: healthy, READY: ready, LIVE: live, METRICS: metrics}
    await stack.enter_async_context(serving(pages, settings.host, settings.port or 0))
    return prometheus
