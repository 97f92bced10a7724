"""How far the shards are read, as the log's owner knows it, and what follows from it.

Readers report their progress (:class:`~kainite.log.client.ReadingReport`). The owner asks it four questions:

=====================================================  ================================================================
which units have waited for too long for their parts   :mod:`kainite.log.collecting.waiting`
which units the watermark makes complete               :mod:`kainite.owner.ending`
which shards are read on, and which ones wait          :mod:`kainite.owner.reading_turn`
which shard or number holds units up                   :mod:`kainite.owner.watermark_lag`, :mod:`kainite.owner.turn_lag`
=====================================================  ================================================================

Nothing here is durable: a new owner learns the progress from the next reports, within a second or two.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from kainite.log.client import ReadingReport
from kainite.log.collecting.reported_shards import ReportedShards
from kainite.log.collecting.waiting import Waiting
from kainite.log.collecting.watermark import Held, Watermark
from kainite.log.state.backlog import OpenBacklog
from kainite.log.state.folded import FoldedLog
from kainite.owner.ending import Ending
from kainite.owner.entry_writer import EntryWriter
from kainite.owner.reading_turn import ReadingTurn
from kainite.owner.turn_lag import HeldTurn, TurnLag
from kainite.owner.watermark_lag import WatermarkLag
from kainite.settings import LogSettings, UowSettings
from kainite.uow.fragment import Fragment


class ReadingProgress:
    """Keeps how far the shards are read, and tells what waits for it.

    Args:
        state: the folded log.
        settings, uow: the settings of the log and of its units.
        clock: returns seconds that only go forward.
    """

    def __init__(self, state: FoldedLog, settings: LogSettings, uow: UowSettings, clock: Callable[[], float]) -> None:
        self._state = state
        self._watermark = Watermark(clock, lambda: state.awaited)
        self._lag = WatermarkLag(self._watermark, uow, clock)
        self._turn_lag = TurnLag(self._watermark, uow, clock)
        self._reading_turn = ReadingTurn(self._watermark, self._turn_lag, settings, clock)
        self._ending = Ending(self._watermark, uow)
        self.waiting = Waiting(uow.timeout, clock)
        """How long open units have waited for their parts."""
        if arrivals := [unit.arrived_ms for unit in state.open.values() if unit.arrived_ms is not None]:
            self._watermark.learn(max(arrivals))  # no other record may come

    @property
    def reported(self) -> ReportedShards:
        """Returns the shards that readers have reported."""
        return self._watermark.reported

    @property
    def hold_ms(self) -> int | None:
        """Returns the arrival beyond which no shard is to be read further now; None while all may be read."""
        return self._reading_turn.hold_ms(self._state)

    def report(self, report: ReadingReport) -> None:
        """Takes a reader's report."""
        self.waiting.report(self._watermark.report(report))
        self._ending.reported()

    def arrived(self, fragments: Sequence[Fragment]) -> None:
        """Notes when the records arrived of which fragments are about to be collected."""
        if fragments and (arrived_ms := fragments[0].arrived_ms) is not None:
            self._watermark.learn(arrived_ms)

    def collected(self) -> None:
        """Notes that an append has been collected: a unit may be complete."""
        self._ending.collected()

    @contextlib.contextmanager
    def asking(self, ask: Callable[[], None]) -> Iterator[None]:
        """Calls ``ask``, while the context is entered, when a unit waits for a report of how far shards are read."""
        self._ending.readers.add(ask)
        try:
            yield
        finally:
            self._ending.readers.discard(ask)

    async def end_units(self, owner: EntryWriter) -> None:
        """Dispatches the units that the watermark makes complete, until cancelled; raises as the owner's writes."""
        await self._ending.run(owner)

    def held_by(self) -> Held | HeldTurn | None:
        """Returns the shard that holds the watermark back, or the number that units wait for; None for neither."""
        return self._lag.held_by(self._state) or self._turn_lag.held_by(self._state)

    def long_held_by(self) -> Held | HeldTurn | None:
        """Returns what holds units up for so long that a person should know; None for nothing."""
        return self._lag.long_held_by(self._state) or self._turn_lag.held_by(self._state)

    def backlog(self) -> OpenBacklog | None:
        """Returns the units that are being collected while they hold shards; None while they hold none."""
        return self._reading_turn.backlog(self._state)

    def look(self) -> float:
        """Notes and warns of what holds units up; returns by how many seconds the watermark is behind."""
        self._turn_lag.look(self._state)
        self._reading_turn.tell(self._state)
        return self._lag.seconds(self._state)
