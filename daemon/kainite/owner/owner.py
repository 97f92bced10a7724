"""The daemon's owner of a log partition: answers from memory, writes packed batches, one at a time.

This module puts the owner together. What the owner does is elsewhere:

=========================================  ==========================================================================
:mod:`~kainite.owner.serving`              how it is opened on a partition that is mounted
:mod:`~kainite.owner.shard_appends`        what comes through the shards: recognised, collected, or refused
:mod:`~kainite.owner.durable_writing`      how decisions are folded, queued, and made durable; what a crash leaves
:mod:`~kainite.owner.append_queue`         the appends that are not durable yet, and what may be granted
:mod:`~kainite.owner.room`                 when another append is taken
:mod:`~kainite.owner.reading_progress`     how far the shards are read, and what waits for it
:mod:`~kainite.owner.upkeep`               what is done on a timer: outcomes of the apply job, requests, units that
                                           never complete, snapshots and truncation
:mod:`~kainite.owner.refit`                units that did not fit the target's catalogue
:mod:`~kainite.owner.owner_tasks`          the tasks that do all this, and what ends the owner
=========================================  ==========================================================================

A crash leaves what is durable; the next owner begins with it. An owner that meets another one's fence fails, and every
append that waits raises :class:`LogFencedError`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from functools import partial

from kainite.base.clock import epoch_ms
from kainite.base.errors import KainiteError, LogFencedError, LogHandedOverError, LogUnavailableError
from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.log.collecting.watermark import Held
from kainite.log.contract import LogStore
from kainite.log.format.entry import Entry, OperationMeta
from kainite.log.state.backlog import LogBacklog, OpenBacklog
from kainite.log.state.folded import FoldedLog
from kainite.log.state.summary import DurableMarks, LogSummary, OwnersFigures, ShardFigure, summary_of
from kainite.observe.meter import Meter
from kainite.owner.append_queue import AppendQueue
from kainite.owner.audit.trail import AuditTrail
from kainite.owner.collected_stream import stream_entries
from kainite.owner.durable_writing import DurableWriting
from kainite.owner.looking import Looking
from kainite.owner.mount import Mount
from kainite.owner.owner_tasks import OwnerTasks
from kainite.owner.reading_progress import ReadingProgress
from kainite.owner.refit import READ_EVERY_S, Refitting
from kainite.owner.room import OwnersRoom
from kainite.owner.shard_appends import ShardAppends
from kainite.owner.turn_lag import HeldTurn
from kainite.owner.unit_metrics import UnitMetrics
from kainite.owner.upkeep import LogUpkeep
from kainite.settings import LogSettings, UowEnd, UowSettings
from kainite.uow.current_catalogue import CurrentCatalogue
from kainite.uow.fragment import Fragment

_logger = logging.getLogger(__name__)


class LogOwner:
    """Owns a log partition while open; implements :class:`~kainite.log.client.LogClient`.

    Use :func:`~kainite.owner.serving.serve_log`, which opens it. All methods belong to the event loop that opened it.

    Args:
        store, settings, uow: the log's store, and the settings of the log and of its units.
        mounted: the hold on the partition.
        state: the folded log, as it is durable.
        audit: gets the units before they leave the log; None means that nothing keeps them.
        clock: measures leases, in seconds.
        meter: takes the metrics.
    """

    def __init__(
        self,
        store: LogStore,
        settings: LogSettings,
        uow: UowSettings,
        mounted: Mount,
        state: FoldedLog,
        audit: AuditTrail | None,
        clock: Callable[[], float],
        meter: Meter,
    ) -> None:
        self._store = store
        self._settings = settings
        self._uow = uow
        self._mount = mounted
        self.state = state
        """The folded log, ahead of the store by the queued entries."""
        self.refitting: Refitting | None = None
        """Judges misfits again; None while no catalogue is known (:meth:`judge_by`)."""
        self.looking = Looking(clock, settings.poll, several=bool(settings.targets))
        self._queue = AppendQueue(state.positions, settings.queue_bytes)
        self._tasks = OwnerTasks(self._queue.fail, meter)
        self._room = OwnersRoom(self._queue, state, settings, clock)
        self._reading = ReadingProgress(state, settings, uow, clock)
        self._marks = DurableMarks(state)
        self._metrics = UnitMetrics(meter, clock)
        self._writing = DurableWriting(
            state, self._queue, store, mounted, settings, self._metrics, clock, self.summary, self._tasks.fail
        )
        self.followers = self._writing.followers
        """Functions that are called with each batch that becomes durable, in order; each must return at once."""
        self._appends = ShardAppends(state, uow, self._queue, self._room, self._reading, self._writing)
        self._upkeep = LogUpkeep(
            store, settings, uow, mounted, audit, self._reading.waiting, self._reading.reported, self.looking
        )

    def __repr__(self) -> str:
        return f"<LogOwner {self._mount!r} next={self.state.next_id} queued={len(self._queue)}>"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[LogOwner]:
        """Runs the owner's tasks; at the end stops them, and releases the mount.

        Does not wait for queued appends, which are not acknowledged.
        """
        self._start()
        try:
            yield self
        finally:
            unforeseen = await self._tasks.end(LogUnavailableError("the log's owner has stopped"))
            if not isinstance(self._queue.error, LogFencedError):
                with suppress(KainiteError):
                    await asyncio.to_thread(self._mount.release)
            for error in unforeseen:
                raise error

    @property
    def generation(self) -> int:
        return self._mount.generation

    @property
    def durable_id(self) -> int:
        """Returns the id after the last entry that is durable and may be acknowledged."""
        return self._writing.next_id

    @property
    def queued(self) -> tuple[int, int]:
        """Returns how many appends are not durable yet, and their bytes, approximately."""
        return len(self._queue), self._queue.bytes

    async def collect_from(self, stream: str, *, adopt: bool = False, note: OperationMeta | None = None) -> None:
        """Notes the stream whose shards are collected; returns when it is durable.

        Args:
            stream: the stream's identity; no other stream ever has the same.
            adopt: whether the log takes the stream although it has positions of another one, and drops these
                positions; allowed only before the first append.
            note: the record of the person who lets it adopt the stream.

        Raises:
            LogRequestError: the log has positions of another stream.
        """
        log = f"{self._settings.partition} of {self._settings.table}"
        await self.write(lambda state: stream_entries(state, stream, log, adopt=adopt, note=note))
        if adopt:
            self._queue.take_positions(self.state.positions)

    def judge_by(self, catalogue: CurrentCatalogue, every: float = READ_EVERY_S) -> None:
        """Judges units that did not fit the catalogue again, when a person asks and when the catalogue has changed.

        Args:
            catalogue: the target's tables.
            every: seconds between two reads of the catalogue while there are such units.
        """
        self.refitting = Refitting(self._store, self._settings.partition, self._uow, catalogue, self)
        self._tasks.repeat(partial(self.refitting.watch, every), "misfits not judged", every)

    def held_by(self) -> Held | HeldTurn | None:
        """Returns the shard that holds the watermark back, or the number that units wait for; None for neither."""
        return self._reading.held_by()

    async def failed(self) -> KainiteError:
        """Waits until the owner cannot go on, and returns the error: most likely it was fenced."""
        return await self._tasks.failed()

    def give_up(self, why: str) -> None:
        """Ends the owner, as a person has asked: another process may own the log at once."""
        self._tasks.fail(LogHandedOverError(why))

    async def position(self, shard_id: str) -> Position | None:
        return await self._appends.position(shard_id)

    async def begin(self, at_ms: int, stream: str = "") -> int:
        return await self._appends.begin(at_ms, stream)

    async def append(
        self,
        shard_id: str,
        first: Position,
        last: Position,
        fragments: Sequence[Fragment],
        after: Position | None = None,
    ) -> None:
        await self._appends.append(shard_id, first, last, fragments, after)

    async def room(self) -> None:
        """Waits until an append would be taken at once; raises the error of an owner that has failed."""
        await self._room.for_an_append()

    def backlog(self) -> LogBacklog | OpenBacklog | None:
        """Returns the backlog of units while it keeps appends, or shards that are ahead, waiting; None for neither."""
        return self._room.backlog() or self._reading.backlog()

    @property
    def hold_ms(self) -> int | None:
        return self._reading.hold_ms

    def report(self, report: ReadingReport) -> None:
        self._reading.report(report)

    def asking(self, ask: Callable[[], None]) -> AbstractContextManager[None]:
        """Calls ``ask``, while the context is entered, when a unit waits for a report of how far shards are read.

        ``ask`` returns at once, and need not lead to a report: readers report by themselves, too.
        """
        return self._reading.asking(ask)

    async def write(self, decide: Callable[[FoldedLog], Sequence[Entry]]) -> None:
        """Appends entries of the owner's own, decided on the present state.

        Returns when the entries, if any, and all entries that the decision depends on are durable.
        """
        await self._writing.write(decide)

    def summary(self) -> LogSummary:
        """Returns the log's figures as they are now."""
        figures = OwnersFigures(
            epoch_ms(),
            self._marks.now(self.state, self.durable_id),
            len(self._queue),
            str(self.backlog() or ""),
            str(self._reading.long_held_by() or ""),
            tuple(ShardFigure(shard, behind) for shard, behind in self._reading.waiting.behind().items()),
        )
        return summary_of(self.state, figures)

    def _start(self) -> None:
        """Starts the owner's tasks."""
        tasks = self._tasks
        tasks.start(self._writing.write_batches)
        tasks.start(self._writing.beat)
        tasks.repeat(partial(self._upkeep.run, self), "log upkeep put off", 0.0)
        tasks.start(lambda: self._metrics.sample_on(lambda: (self.state, self._reading.look())))
        if self._uow.end is UowEnd.WATERMARK:
            tasks.repeat(partial(self._reading.end_units, self), "units not ended", self._settings.poll)
