"""Runs an extraction from its settings to its exit code: makes its parts, and runs it until it ends or a signal comes.

=========================  =============================================================================================
first SIGTERM or SIGINT    no further cycle; the one under way has ``shutdownGraceMillis``, then it is given up; exit 0
second, a second later     everything ends at once; exit 1
=========================  =============================================================================================

A cycle that is given up leaves behind what a crash leaves (:mod:`kainite.extract.cycles.cycle`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from typing import Final

from kainite.aws import clients as aws
from kainite.base import service_manager
from kainite.base.errors import StoppedError
from kainite.base.file_limit import OF_ANY_PROCESS, provide
from kainite.base.log_thread import log_in_thread
from kainite.base.logs import event
from kainite.base.outage import wait_out_async
from kainite.base.retry import Backoff
from kainite.base.signals import Signals
from kainite.child.program_lookup import find
from kainite.extract.cycles.cyclic_extraction import CyclicExtraction
from kainite.extract.cycles.delivery import Delivery
from kainite.extract.offsets.offset_file import OffsetFile, offset_file_of
from kainite.extract.output.sink import Aggregation, Sink
from kainite.extract.patience import Patience
from kainite.extract.plain_extraction import PlainExtraction
from kainite.extract.progress import ExtractionProgress, Showing
from kainite.extract.setbacks import Setbacks
from kainite.extract.status import ExtractStatus
from kainite.kinesis.client import StreamClient
from kainite.kinesis.write.put import StreamWriter
from kainite.observe.metric import EXTRACT_METRICS
from kainite.observe.publishing import Publishers, publishing_of
from kainite.settings import ExtractMode, MetricsLevel, Settings

logger = logging.getLogger(__name__)

OPEN_FILES: Final = OF_ANY_PROCESS + 32
"""The most files and connections that an extraction has open: a connection for each of asyncio's threads too."""


def run(settings: Settings, showing: Showing, *, once: bool) -> int:
    """Extracts; returns the exit code.

    Raises:
        SettingsError: the program does not exist, or a setting is missing.
        SourceError: the offset file does not exist, or the extractor failed too often in a row.
        StreamError: the stream does not exist, or refuses records.
    """
    find(settings.extract.command, "extractorName")
    offset_file = offset_file_of(settings)
    with offset_file.locked() if offset_file else nullcontext(), log_in_thread():
        provide(OPEN_FILES)
        return asyncio.run(_run(settings, offset_file, showing, once=once))


async def _run(settings: Settings, offset_file: OffsetFile | None, showing: Showing, *, once: bool) -> int:
    stop = asyncio.Event()
    extracting = asyncio.create_task(extract(settings, offset_file, showing, stop, once=once))
    signals = Signals(stop, extracting.cancel, asyncio.Event())
    try:
        return 0 if await _until_over(extracting, stop, settings.child.shutdown_grace) else 1
    finally:
        signals.remove()


async def _until_over(extracting: asyncio.Task[None], stop: asyncio.Event, grace: float) -> bool:
    """Waits for the end, after ``stop`` for ``grace`` seconds only; returns False when a second signal ended it."""
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({extracting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    _, late = await asyncio.wait({extracting}, timeout=grace)
    if late:
        event(logger, logging.WARNING, "cycle given up: it is asked for again at the next start", grace=grace)
        extracting.cancel()
        await asyncio.wait({extracting})
        return True
    if extracting.cancelled():
        return False
    extracting.result()
    return True


async def extract(
    settings: Settings, offset_file: OffsetFile | None, showing: Showing, stop: asyncio.Event, *, once: bool
) -> None:
    sink = _sink(settings)
    progress = ExtractionProgress(showing, sink.totals)
    extract, child = settings.extract, settings.child
    status = ExtractStatus(sink.totals, quiet_limit=_quiet_limit(settings))
    away = Backoff.doubling(child.restart_backoff, child.restart_backoff_max)
    setbacks = Setbacks(_patience(settings), away, status, progress, _puts_on(settings))
    extraction: PlainExtraction | CyclicExtraction
    if extract.mode is ExtractMode.PLAIN:
        extraction = PlainExtraction(extract, child, sink, progress, status, setbacks, stop)
    else:
        delivery = Delivery(sink, offset_file, progress, extract.ahead_bytes)
        status.waiting = lambda: delivery.held_bytes
        extraction = CyclicExtraction(extract, child, delivery, status, setbacks, stop)
    async with _published(settings, status):
        with suppress(StoppedError):
            await _extract(settings, sink, progress, status, extraction, stop, once=once)


async def _extract(
    settings: Settings,
    sink: Sink,
    progress: ExtractionProgress,
    status: ExtractStatus,
    extraction: PlainExtraction | CyclicExtraction,
    stop: asyncio.Event,
    *,
    once: bool,
) -> None:
    shards = await wait_out_async(sink.open, stop, f"stream {settings.stream.name}")
    status.opened()
    event(logger, logging.INFO, "extraction started", stream=settings.stream.name, shards=shards)
    progress.say("started", stream=settings.stream.name, shards=shards)
    service_manager.tell(service_manager.READY, service_manager.status(_puts_on(settings)))
    try:
        await extraction.run(once=once)
    finally:
        progress.close()
        progress.say("ended")
    event(logger, logging.INFO, "extraction ended", records=sink.totals.records, units=sink.totals.units)


@asynccontextmanager
async def _published(settings: Settings, status: ExtractStatus) -> AsyncIterator[None]:
    """Publishes the extraction's metrics and health while entered, if the settings ask for it."""
    level = settings.metrics.level or MetricsLevel.NONE
    wanted = Publishers(EXTRACT_METRICS, level, settings.extract.metrics_port)
    if wanted.port is None and level is MetricsLevel.NONE:
        yield
        return
    async with publishing_of(settings, wanted, status.report) as meter:
        status.meter = meter
        sampling = asyncio.create_task(status.sampling())
        try:
            yield
        finally:
            sampling.cancel()
            status.sample()


def _puts_on(settings: Settings) -> str:
    return f"puts on stream {settings.stream.name}"


def _quiet_limit(settings: Settings) -> float | None:
    """Returns after how many silent seconds an extraction stands still; None for programs that may be silent."""
    if settings.extract.mode is ExtractMode.PLAIN:
        return None
    return (settings.extract.interval or 0.0) + max(settings.extract.reply_timeout, settings.metrics.hung_after)


def _sink(settings: Settings) -> Sink:
    stream = settings.stream
    kinesis = aws.client("kinesis", settings.aws)
    writer = StreamWriter(kinesis, stream.name, stream.arn)
    lister = StreamClient(kinesis, stream.name, stream.arn)
    extract = settings.extract
    aggregation = Aggregation(extract.aggregation_bytes, extract.aggregation_time) if extract.aggregation else None
    return Sink(lister, writer, extract.spread, stream.shard_sync, _patience(settings), aggregation)


def _patience(settings: Settings) -> Patience:
    child = settings.child
    return Patience(child.restart_backoff, child.restart_backoff_max, settings.extract.tries)
