"""Extraction in cycles: one after the other, by one process as long as it lives.

:mod:`kainite.extract.cycles.cycle` decides what is durable when. This module does each step up to a whole answer, and
:mod:`kainite.extract.cycles.delivery` does the steps behind it. After a failure of the extractor it begins the cycle
again with a fresh process, after a pause. An extractor that allows it is asked for the next cycle while answers are
being delivered.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from kainite.base.errors import ChildError
from kainite.base.waiting import wait_until_set
from kainite.child.markers.extraction import CycleDone, Extracted
from kainite.extract.cycles.cycle import Ask, Cycle, CycleState, Listen, Over, PutMessages, Store
from kainite.extract.cycles.delivery import Delivery
from kainite.extract.extractor import Extractor
from kainite.extract.setbacks import Setbacks
from kainite.extract.status import ExtractStatus
from kainite.settings import ChildSettings, ExtractOffsets, ExtractSettings

DEFAULT_INTERVAL = 1.0


class CyclicExtraction:
    """Cycles until ``stop``, which lets the cycle under way end.

    Args:
        extract, child: the settings of the extractor and of its process.
        delivery: puts answers on the stream, and stores their places.
        status: takes answers.
        setbacks: counts the extractor's failures, and tells them.
        stop: set when no further cycle is to begin.
    """

    def __init__(
        self,
        extract: ExtractSettings,
        child: ChildSettings,
        delivery: Delivery,
        status: ExtractStatus,
        setbacks: Setbacks,
        stop: asyncio.Event,
    ) -> None:
        self._extract = extract
        self._child = child
        self._delivery = delivery
        self._status = status
        self._setbacks = setbacks
        self._stop = stop
        self._place = delivery.stored
        self._ahead = False
        self._extractor: Extractor | None = None

    async def run(self, *, once: bool) -> None:
        """Runs cycles; with ``once``, until one has succeeded. Returns when all answers are delivered.

        Raises:
            SourceError: the extractor failed too often in a row, or the place cannot be stored.
            StreamError: the stream refuses records.
        """
        reading = asyncio.create_task(self._read(once=once))
        delivering = asyncio.create_task(self._delivery.run())
        try:
            await asyncio.wait({reading, delivering}, return_when=asyncio.FIRST_COMPLETED)
            (delivering if delivering.done() else reading).result()
        finally:
            reading.cancel()
            delivering.cancel()
            self._drop_extractor()
            await asyncio.gather(reading, delivering, return_exceptions=True)

    async def _read(self, *, once: bool) -> None:
        interval = DEFAULT_INTERVAL if self._extract.interval is None else self._extract.interval
        while await self._may_ask():
            brought = await self._try_cycle()
            if brought is not None and once:
                break
            if not brought or self._extract.offsets is ExtractOffsets.TIME:  # a range brings all that there is
                await wait_until_set(self._stop, interval)
        await self._delivery.delivered()
        if self._extractor is not None:
            await self._extractor.close()

    async def _may_ask(self) -> bool:
        """Waits until the next cycle may be asked for; returns whether there is a next cycle."""
        if self._ahead:
            await self._delivery.room()
        if self._extractor is not None and self._extractor.broken:
            self._drop_extractor()
        # A request ahead names what is stored, and an extractor may take a "stored" of null for a missing one.
        if not self._ahead or self._extractor is None or self._delivery.stored.start is None:
            await self._delivery.delivered()
            self._ahead, self._place = False, self._delivery.stored
        return not self._stop.is_set()

    async def _try_cycle(self) -> int | None:
        """Returns how many messages a cycle brought; None after a failure and its pause."""
        try:
            brought = await self._cycle()
        except ChildError as error:
            seconds = self._setbacks.pause_after(error, cyclic=True)
            self._drop_extractor()
            await wait_until_set(self._stop, seconds)
            return None
        self._setbacks.succeeded()
        return brought

    async def _cycle(self) -> int:
        """Asks for a cycle, and hands it over once it is answered; returns how many messages it brought."""
        offsets, hold = self._extract.offsets, self._extract.hold_bytes
        cycle = Cycle(offsets, self._place, datetime.now(UTC), hold, self._delivery.behind)
        while cycle.stage not in (CycleState.ANSWERED, CycleState.OVER):
            match cycle.step():
                case Over():
                    break
                case Listen():
                    await self._listen(cycle)
                    continue
                case Ask(request):
                    self._running_extractor().ask(request)
                case PutMessages(messages):
                    await self._delivery.put_early(messages)
                case Store(place):
                    await self._delivery.store(place)
            cycle.done()
        self._status.answered(cycle.lag)
        self._ahead = cycle.ahead and self._extract.ahead_bytes > 0
        self._place = cycle.next_place
        self._delivery.hand_over(cycle)
        return cycle.messages

    async def _listen(self, cycle: Cycle) -> None:
        assert self._extractor is not None
        match await self._extractor.next():
            case Extracted(payload):
                self._status.heard()
                cycle.message(payload)
            case CycleDone():
                cycle.end()

    def _running_extractor(self) -> Extractor:
        """Returns the process; a fresh one where there is none."""
        if self._extractor is None:
            self._extractor = Extractor(self._extract, self._child)
        return self._extractor

    def _drop_extractor(self) -> None:
        if self._extractor is not None:
            self._extractor.kill()
            self._extractor = None
