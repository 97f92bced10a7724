"""Publishes the apply job's metrics and health on a thread of its own: the driver has no event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future

from kainite.observe.meter import SILENT, Meter
from kainite.observe.metric import APPLY_METRICS
from kainite.observe.publishing import Publishers, publishing_of
from kainite.settings import MetricsLevel, Settings
from kainite_spark.driver.job_health import JobReport

END_S = 10.0
"""How long the end waits for the last figures to be sent."""


@contextlib.contextmanager
def publishing(settings: Settings, report: Callable[[], JobReport]) -> Iterator[Meter]:
    """Publishes what the meter is given until the end; starts nothing that the settings do not ask for.

    Args:
        settings: the whole of them.
        report: the job's health at the moment; called on another thread.

    Raises:
        SettingsError: the endpoint's address cannot be listened on.
    """
    wanted = Publishers(APPLY_METRICS, cloudwatch_level(settings), settings.apply.metrics_port)
    if wanted.port is None and wanted.level is MetricsLevel.NONE:
        yield SILENT
        return
    published = _Published(settings, wanted, report)
    thread = threading.Thread(target=published.run, name="metrics", daemon=True)
    thread.start()
    try:
        yield published.meter.result()
    finally:
        published.stop()
        thread.join(END_S)


def cloudwatch_level(settings: Settings) -> MetricsLevel:
    """Returns the level that is published to CloudWatch.

    It is the setting, or by default SUMMARY where DynamoDB is AWS's own, and NONE where a double of it is read without
    one of CloudWatch.
    """
    if settings.metrics.level is not None:
        return settings.metrics.level
    double = settings.aws.dynamodb_endpoint is not None and settings.aws.cloudwatch_endpoint is None
    return MetricsLevel.NONE if double else MetricsLevel.SUMMARY


class _Published:
    """The thread's work; ``meter`` has the meter, or why there is none."""

    def __init__(self, settings: Settings, wanted: Publishers, report: Callable[[], JobReport]) -> None:
        self._settings = settings
        self._wanted = wanted
        self._report = report
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self.meter: Future[Meter] = Future()

    def run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._publish())

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nothing was published
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def _publish(self) -> None:
        try:
            async with publishing_of(self._settings, self._wanted, self._report) as meter:
                self.meter.set_result(meter)
                await self._stopping.wait()
        except Exception as error:
            if self.meter.done():
                raise
            self.meter.set_exception(error)
