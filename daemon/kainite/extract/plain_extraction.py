"""Extraction by a program that writes its messages and exits: run once, or again and again.

State: none that lasts. Messages go on the stream as they come, so a run that fails, or that a crash of Kainite cuts
off, leaves on the stream what it wrote until then; only the program knows how far its source has been read. What it
wrote and Kainite had not put is lost with a crash: a program that stores its offset when it has *written* a message,
and not when it exits with 0, leaves a gap. :mod:`kainite.extract.cycles.cycle` has neither fault.

A run has succeeded when its output has ended and its exit status is 0. Then the bytes after its last EOM are a message,
as the bytes before EOP are; after a failure they are reported and not put, because they may not be whole.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from kainite.base.errors import ChildError
from kainite.base.logs import event
from kainite.base.time_limit import time_limit
from kainite.base.waiting import wait_until_set
from kainite.child.markers.extraction import CycleDone, Extracted, Unfinished
from kainite.extract.extractor import HELD_LIMIT, Extractor
from kainite.extract.output.sink import Sink
from kainite.extract.progress import ExtractionProgress
from kainite.extract.setbacks import Setbacks
from kainite.extract.status import ExtractStatus
from kainite.settings import ChildSettings, ExtractSettings

_SHOWN_RESIDUE = 200

logger = logging.getLogger(__name__)


class PlainExtraction:
    """Runs until ``stop``, at which the program gets SIGTERM; what it has written is still put.

    Args:
        extract, child: the settings of the extractor and of its process.
        sink: puts messages on the stream.
        progress: shows each run.
        status: takes messages and runs.
        setbacks: counts the program's failures, and tells them.
        stop: set when the run under way is to end, and no further one to begin.
    """

    def __init__(
        self,
        extract: ExtractSettings,
        child: ChildSettings,
        sink: Sink,
        progress: ExtractionProgress,
        status: ExtractStatus,
        setbacks: Setbacks,
        stop: asyncio.Event,
    ) -> None:
        self._extract = extract
        self._child = child
        self._sink = sink
        self._progress = progress
        self._status = status
        self._setbacks = setbacks
        self._stop = stop

    async def run(self, *, once: bool) -> None:
        """Runs the program; with ``once``, or without an interval, until it has succeeded once.

        Raises:
            SourceError: the program failed too often in a row.
            StreamError: the stream refuses records.
        """
        interval = None if once else self._extract.interval
        while not self._stop.is_set():
            failed = await self._try_run()
            if failed is None and interval is None:
                return
            await wait_until_set(self._stop, interval or 0.0 if failed is None else failed)

    async def _try_run(self) -> float | None:
        """Runs the program once; returns None when it succeeded, and the seconds to wait after a failure."""
        try:
            await self._one_run()
        except ChildError as error:
            return self._setbacks.pause_after(error, cyclic=False)
        self._setbacks.succeeded()
        self._status.answered(None)
        return None

    async def _one_run(self) -> None:
        before, rest = self._sink.totals.records, b""
        extractor = Extractor(self._extract, self._child)
        stopping = asyncio.create_task(self._stop_with(extractor))
        try:
            while said := await _some(extractor, self._sink):
                rest = b"".join(piece.payload for piece in said if isinstance(piece, Unfinished))
                await self._sink.put([piece.payload for piece in said if isinstance(piece, Extracted)])
                self._progress.moved(None)
                self._status.heard()
            status = await extractor.close()
            if rest and status == 0:
                await self._sink.put([rest])
        finally:
            stopping.cancel()
            extractor.kill()
        if rest and status:
            _report_residue(rest)
        if status and not self._stop.is_set():
            raise extractor.failure(status)
        self._progress.say("run", messages=self._sink.totals.records - before, status=status)

    async def _stop_with(self, extractor: Extractor) -> None:
        await self._stop.wait()
        extractor.terminate()


async def _some(extractor: Extractor, sink: Sink) -> list[Extracted | Unfinished]:
    """Returns the messages that are there, after waiting for one; none when the output has ended.

    With aggregation it waits for more messages, as long as a put may linger. The messages have about
    :data:`kainite.extract.extractor.HELD_LIMIT` bytes at most: the extractor's process cannot be further ahead.
    """
    messages: list[Extracted | Unfinished] = []
    while not messages and (said := await extractor.next()) is not None:
        messages += _with_payload(said)
    size = sum(len(message.payload) for message in messages)
    if size and sink.linger:
        with suppress(TimeoutError):
            async with time_limit(sink.linger):
                while not sink.filled_by(size) and size < HELD_LIMIT and (said := await extractor.next()) is not None:
                    messages += (more := _with_payload(said))
                    size += sum(len(message.payload) for message in more)
    while messages and (said := extractor.taken()) is not None:
        messages += _with_payload(said)
    return messages


def _with_payload(said: Extracted | CycleDone | Unfinished) -> list[Extracted | Unfinished]:
    return [said] if isinstance(said, Extracted | Unfinished) and said.payload else []


def _report_residue(residue: bytes) -> None:
    text = residue[:_SHOWN_RESIDUE].decode("utf-8", "replace")
    event(logger, logging.WARNING, "last message without its EOM not put", size=len(residue), begins=text)
