"""When the log's owner looks whether the watermark has made units complete, and when it asks how far shards are read.

Readers report once a second by themselves. A unit that could end sooner would wait for the next report, so the owner
asks for one; but only while that can help: *the earliest unit* is the one that is released before all others
(:func:`~kainite.log.collecting.watermark.next_due_ms`), and no shard can be read past its time before Kinesis' clock
shows that time (:meth:`~kainite.log.collecting.watermark.Watermark.seconds_until`).

==================================================  ===================================================================
state                                               what the owner does
==================================================  ===================================================================
no unit waits                                       nothing, until one comes
the earliest unit's grace runs                      looks when it is over, and each MOST_S seconds: the earliest unit
                                                    may be another one by then
its grace is over, and a shard is not read so far   asks the readers each ASK_S seconds, and looks when one has reported
every shard is read so far                          dispatches it, and all that may go with it
==================================================  ===================================================================

Between two looks LOOK_S seconds pass at least, and more where a look takes long: it costs time for each open unit, a
shard that lags may leave hundreds of thousands of them open, and the owner has to append meanwhile. Nothing here
decides whether a unit is complete: a look too many, or a question that is lost, changes nothing but the time. Nothing
is durable; a crash begins with a look.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import Final

from kainite.base.clock import epoch_ms
from kainite.base.waiting import wait_until_set
from kainite.log.collecting.overdue import release
from kainite.log.collecting.unit_entries import RELEASED
from kainite.log.collecting.watermark import Watermark, next_due_ms
from kainite.log.format.entry import Entry
from kainite.log.state.folded import FoldedLog
from kainite.owner.entry_writer import EntryWriter
from kainite.settings import UowSettings

LOOK_S: Final = 0.05
"""The least seconds between two looks."""

REST: Final = 8.0
"""The least time between two looks, in multiples of the time for finding the next due time; a look takes two."""

ASK_S: Final = 0.2
"""Seconds between two questions how far shards are read, while a unit waits only for the answer."""

MOST_S: Final = 0.25
"""The most seconds between two looks while a unit waits."""


class Ending:
    """Dispatches the units that the watermark makes complete.

    Args:
        watermark: tells how far the shards are read.
        rules: the settings by which units are collected.
    """

    def __init__(self, watermark: Watermark, rules: UowSettings) -> None:
        self._watermark = watermark
        self._rules = rules
        self._news = asyncio.Event()
        self._awaited = True  # whether a report may make the earliest unit complete
        self._took = 0.0  # seconds, to find out when the last look was due
        self.readers: set[Callable[[], None]] = set()
        """Functions that each make a reader report, at once or soon."""

    def collected(self) -> None:
        """Notes that an append has been collected."""
        if self._awaited:
            self._news.set()

    reported = collected
    """Notes that a reader has reported."""

    async def run(self, owner: EntryWriter) -> None:
        """Releases units until cancelled.

        Raises:
            LogUnavailableError, LogFencedError: as :meth:`kainite.owner.owner.LogOwner.append`.
        """
        while True:
            await self._next_look(owner.state)
            await self._release(owner)
            await asyncio.sleep(max(LOOK_S, REST * self._took))

    async def _next_look(self, state: FoldedLog) -> None:
        """Waits until a unit may be complete; asks the readers for a report if the unit waits only for the reading."""
        began = time.perf_counter()
        due_ms = next_due_ms(state.open.values(), self._rules)
        self._took = time.perf_counter() - began
        left = self._watermark.seconds_until(due_ms)
        self._awaited = left <= 0 or math.isinf(due_ms)
        if due_ms <= self._watermark.until_ms():
            return
        if left <= 0:
            for ask in tuple(self.readers):
                ask()
        if math.isinf(due_ms):
            await self._news.wait()
        else:
            await wait_until_set(self._news, min(left, MOST_S) if left > 0 else ASK_S)
        self._news.clear()

    async def _release(self, owner: EntryWriter) -> None:
        """Dispatches the units that the watermark has made complete, some at a time."""
        released = RELEASED

        def decided(state: FoldedLog) -> Sequence[Entry]:
            nonlocal released
            watermark = self._watermark
            entries = release(state, self._rules, epoch_ms(), watermark.until_ms())
            released = len(entries)
            return entries

        while released >= RELEASED:
            await owner.write(decided)
