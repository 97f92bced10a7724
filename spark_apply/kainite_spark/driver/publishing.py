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
"""Seconds for which the job, at its end, waits until the last figures are sent."""


@contextlib.contextmanager
def publishing(settings: Settings, report: Callable[[], JobReport]) -> Iterator[Meter]:
    """Publishes the meter's metrics while entered; starts only the publishers that the settings ask for.

    Args:
        settings: all settings of the application.
        report: the job's health at the moment; called on another thread.

    Raises:
        SettingsError: this process cannot listen on the endpoint's address.
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

    The level is the setting's. Without a setting it is SUMMARY with AWS's own DynamoDB, and NONE with another endpoint
    of DynamoDB while CloudWatch has none.
    """
    if settings.metrics.level is not None:
        return settings.metrics.level
    double = settings.aws.dynamodb_endpoint is not None and settings.aws.cloudwatch_endpoint is None
    return MetricsLevel.NONE if double else MetricsLevel.SUMMARY


class _Published:
    """The work of the publishing thread; ``meter`` has the meter, or the error that kept it from starting."""

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
