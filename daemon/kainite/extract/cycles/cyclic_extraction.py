"""Extraction in cycles: one after the other, by one process as long as it lives.

:mod:`kainite.extract.cycles.cycle` decides what is durable when; this module does each step. After a failure of the
extractor it begins the cycle again with a fresh process, after a pause.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime

from kainite.base.errors import ChildError
from kainite.base.logs import event
from kainite.base.waiting import wait_until_set
from kainite.child.markers.extraction import CycleDone, Extracted
from kainite.extract.cycles.cycle import Ask, Cycle, Listen, Over, Put, Store
from kainite.extract.extractor import Extractor
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.extract.offsets.place import Place
from kainite.extract.output.sink import Sink
from kainite.extract.patience import Patience
from kainite.extract.progress import Progress
from kainite.settings import ChildSettings, ExtractOffsets, ExtractSettings

DEFAULT_INTERVAL = 1.0

logger = logging.getLogger(__name__)


class CyclicExtraction:
    """Cycles until ``stop``, which lets the cycle under way end.

    Args:
        extract, child: the settings of the extractor and of its process.
        offset_file: None with ``extractorOffsets=extractor``.
        sink: puts messages on the stream.
        progress: shows each cycle.
        patience: counts the extractor's failures.
        stop: set when no further cycle is to begin.
    """

    def __init__(
        self,
        extract: ExtractSettings,
        child: ChildSettings,
        offset_file: OffsetFile | None,
        sink: Sink,
        progress: Progress,
        patience: Patience,
        stop: asyncio.Event,
    ) -> None:
        self._extract = extract
        self._child = child
        self._offset_file = offset_file
        self._sink = sink
        self._progress = progress
        self._patience = patience
        self._stop = stop
        self._place = Place(None) if offset_file is None else offset_file.load()
        self._extractor: Extractor | None = None

    async def run(self, *, once: bool) -> None:
        """Runs cycles; with ``once``, until one has succeeded.

        Raises:
            SourceError: the extractor failed too often in a row, or the place cannot be stored.
            StreamError: the stream refuses records.
        """
        interval = DEFAULT_INTERVAL if self._extract.interval is None else self._extract.interval
        try:
            while not self._stop.is_set():
                brought = await self._try_cycle()
                if brought is not None and once:
                    break
                if not brought or self._extract.offsets is ExtractOffsets.TIME:  # a range brings all that there is
                    await wait_until_set(self._stop, interval)
        except BaseException:
            self._drop_extractor()
            raise
        if self._extractor is not None:
            await self._extractor.close()

    async def _try_cycle(self) -> int | None:
        """Returns how many messages a cycle brought; None after a failure and its pause."""
        try:
            brought = await self._cycle()
        except ChildError as error:
            seconds = self._patience.failed(error)
            event(logger, logging.WARNING, "cycle failed: the same is asked again", error=error, pause=seconds)
            self._progress.say("failed", error=str(error), pause=seconds)
            self._drop_extractor()
            await wait_until_set(self._stop, seconds)
            return None
        self._patience.succeeded()
        return brought

    async def _cycle(self) -> int:
        offsets, hold = self._extract.offsets, self._extract.hold_bytes
        cycle = Cycle(offsets, self._place, datetime.now(UTC), hold)
        while True:
            match cycle.step():
                case Over():
                    self._report(cycle)
                    return cycle.messages
                case Listen():
                    await self._listen(cycle)
                    continue
                case Ask(request):
                    self._running_extractor().ask(request)
                case Put(messages):
                    await self._sink.put(messages)
                    self._progress.moved(self._stored())
                case Store(place):
                    await self._store(place)
            cycle.done()

    async def _listen(self, cycle: Cycle) -> None:
        assert self._extractor is not None
        match await self._extractor.next():
            case Extracted(payload):
                cycle.message(payload)
            case CycleDone():
                cycle.end()

    def _running_extractor(self) -> Extractor:
        """Returns the process, or a fresh one where it has ended between two cycles."""
        if self._extractor is not None and self._extractor.broken:
            self._drop_extractor()
        if self._extractor is None:
            self._extractor = Extractor(self._extract, self._child)
        return self._extractor

    def _drop_extractor(self) -> None:
        if self._extractor is not None:
            self._extractor.kill()
            self._extractor = None

    async def _store(self, place: Place) -> None:
        assert self._offset_file is not None
        await asyncio.to_thread(self._offset_file.save, place)
        self._place = place

    def _stored(self) -> Place | None:
        return None if self._offset_file is None else self._place

    def _report(self, cycle: Cycle) -> None:
        self._progress.moved(self._stored())
        if cycle.messages:
            place = self._stored()
            offset = None if place is None else place.start
            self._progress.say("cycle", messages=cycle.messages, offset=offset, putEarly=cycle.put_early)
