"""Puts answered cycles on the stream and stores their places, while the extractor is asked for the next cycle.

Reading and putting run side by side: one task asks the extractor (``cyclic_extraction``), the other one runs
:meth:`Delivery.run`. All cycles that wait make one put, so a stream that is slow gets fuller calls, not more of them.

Invariants
==========

* One put at a time, of cycles in the order of their answers. No message of a cycle is put before all those of the
  cycles before the put are on the stream.
* A place is stored when all messages of its cycle, and of every cycle before it, are on the stream; places are stored
  in the order of the cycles.
* A request names as ``stored`` a place that is stored. So the source never forgets what is not on the stream.
* A fresh process is asked when nothing waits, so the place at which its first request begins is stored.
* Answers wait in memory up to ``ahead_bytes`` and one answer more. A put lingers for further answers
  (:attr:`~kainite.extract.output.sink.Sink.linger`) only while such answers may be asked for.

What is left behind
===================

=================================  ====================================================================================
crash, or the end of the grace     the place of the last put that was whole; some messages behind it, which come again.
after SIGTERM                      The source has what is behind it: it was not told to forget that
some records of a call refused     nothing is stored; the refused records alone are put again
one shard throttled                nothing is stored; the put waits for it, reading goes on up to its bound
the stream refuses for good        the error ends the extraction; nothing is stored of the put and of what waits
the extractor dies                 its unfinished answer is dropped; cycles that were answered are put and stored
a former extraction that wakes up  its put goes on, and comes twice. The lock on the offset file keeps a second one away
=================================  ====================================================================================
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from kainite.base.time_limit import time_limit
from kainite.base.waiting import Changes
from kainite.extract.cycles.cycle import Cycle, PutMessages, Store
from kainite.extract.offsets.offset_file import OffsetFile
from kainite.extract.offsets.place import Place
from kainite.extract.output.sink import Sink
from kainite.extract.progress import ExtractionProgress


class Delivery:
    """Delivers cycles, in the order in which they are handed over.

    Args:
        sink: puts messages on the stream; used by this delivery only.
        offset_file: None with ``extractorOffsets=extractor``.
        progress: shows each cycle that was delivered.
        ahead_bytes: the bytes of messages from which on there is no room for a further cycle.

    Attributes:
        stored: the stored place.
    """

    def __init__(
        self, sink: Sink, offset_file: OffsetFile | None, progress: ExtractionProgress, ahead_bytes: int
    ) -> None:
        self.stored = Place(None) if offset_file is None else offset_file.load()
        self._sink = sink
        self._offset_file = offset_file
        self._progress = progress
        self._ahead_bytes = ahead_bytes
        self._waiting: deque[Cycle] = deque()
        self._awaited = False
        self._changes = Changes()

    async def run(self) -> None:
        """Delivers until it is cancelled.

        Raises:
            SourceError: the place cannot be stored, or the stream was unavailable too often in a row.
            StreamError: the stream refuses records.
        """
        while True:
            await self._changes.until(lambda: bool(self._waiting))
            await self._linger()
            group = tuple(self._waiting)
            await self._deliver(group)
            for _ in group:
                self._waiting.popleft()
            self._changes.tell()

    @property
    def behind(self) -> Place | None:
        """Returns the stored place while cycles wait to be delivered behind it; None when everything is delivered."""
        # Not told by comparing places: offsets are the extractor's own, and may come back.
        return self.stored if self._waiting else None

    def hand_over(self, cycle: Cycle) -> None:
        """Takes an answered cycle; the place at which it begins is stored, or the cycles before it will store it."""
        self._waiting.append(cycle)
        self._changes.tell()

    async def delivered(self) -> None:
        """Waits until everything that was handed over is on the stream, and its place stored."""
        self._awaited = True
        self._changes.tell()
        await self._changes.until(lambda: not self._waiting)
        self._awaited = False

    async def room(self) -> None:
        """Waits until a further cycle may be asked for ahead."""
        await self._changes.until(lambda: self.held_bytes < self._ahead_bytes)

    async def put_early(self, messages: Sequence[bytes]) -> None:
        """Puts messages of a cycle that is not whole yet, behind all cycles that were handed over.

        Raises:
            As :meth:`run`.
        """
        await self.delivered()
        await self._sink.put(messages)
        self._progress.moved(self._shown())

    async def store(self, place: Place) -> None:
        """Makes a place durable. Only this delivery may call it while cycles wait to be delivered.

        Raises:
            SourceError: the file cannot be written.
        """
        assert self._offset_file is not None
        await asyncio.to_thread(self._offset_file.save, place)
        self.stored = place

    async def _linger(self) -> None:
        """Waits until the put is full, no further answer comes before it, or it has lingered long enough."""

        def enough() -> bool:
            held = self.held_bytes
            return self._awaited or not 0 < held < self._ahead_bytes or self._sink.filled_by(held)

        if self._sink.linger:
            with suppress(TimeoutError):
                async with time_limit(self._sink.linger):
                    await self._changes.until(enough)

    @property
    def held_bytes(self) -> int:
        """Returns the bytes of messages that were handed over and are not on the stream yet."""
        return sum(cycle.held_bytes for cycle in self._waiting)

    async def _deliver(self, group: Sequence[Cycle]) -> None:
        puts = [(cycle, step.messages) for cycle in group if isinstance(step := cycle.step(), PutMessages)]
        if puts:
            await self._sink.put([message for _, messages in puts for message in messages])
        for cycle, _ in puts:
            cycle.done()
        stores = [(cycle, step.place) for cycle in group if isinstance(step := cycle.step(), Store)]
        if stores:
            # All cycles of the group are on the stream, so the last place says all that the places before it say.
            await self.store(stores[-1][1])
        for cycle, _ in stores:
            cycle.done()
        for cycle in group:
            self._report(cycle)

    def _report(self, cycle: Cycle) -> None:
        self._progress.moved(self._shown())
        if cycle.messages:
            offset = None if self._offset_file is None else cycle.place.start
            self._progress.say("cycle", messages=cycle.messages, offset=offset, putEarly=cycle.put_early)

    def _shown(self) -> Place | None:
        return None if self._offset_file is None else self.stored
