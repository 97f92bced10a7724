"""The daemon's owner of a log partition: answers from memory, writes packed batches, one at a time.

::

    append ─► decide, fold ─► queue ─► batch ─► PutItem ─► lease valid? ─► acknowledge
                                          ▲        │ one in flight
                                          └────────┘

An append is decided and folded at once (:mod:`kainite.log.collecting.collect`), and queued. It is acknowledged when its
batch is durable and the lease was still running after the store's reply (:mod:`kainite.owner.append`).
:mod:`kainite.owner.append_queue` says what the owner may grant meanwhile, and enforces it.

What a crash leaves behind, step by step:

* before PutItem     nothing; the children's records are delivered again;
* after PutItem      the batch; records delivered again are not beyond the shard's position;
* fenced             the batch in flight met a fence: every waiting append raises :class:`LogFencedError`.

=========================================  ==========================================================================
:mod:`~kainite.owner.append_queue`         the appends that are not durable yet, and what may be granted
:mod:`~kainite.owner.room`                 when another append is taken
:mod:`~kainite.owner.reading_turn`         which shards are read on while too many units are being collected
:mod:`~kainite.owner.ending`               when units that the watermark makes complete are dispatched
:mod:`~kainite.owner.upkeep`               what is done on a timer: outcomes of the apply job, requests, units that
                                           never complete, snapshots and truncation
:mod:`~kainite.owner.refit`                units that did not fit the target's catalogue
:mod:`~kainite.owner.owner_tasks`          the tasks that do all this, and what ends the owner
=========================================  ==========================================================================
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial

from kainite.base.clock import boot_seconds, epoch_ms
from kainite.base.errors import (
    KainiteError,
    LogAppendError,
    LogFencedError,
    LogHandedOverError,
    LogRequestError,
    LogUnavailableError,
)
from kainite.base.garbage import collect_rarely
from kainite.base.logs import event
from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.log.collecting.collect import begin, collect
from kainite.log.collecting.waiting import Waiting
from kainite.log.collecting.watermark import Held, Watermark
from kainite.log.contract import LogStore
from kainite.log.format.entry import Batch, Entry, OperationMeta
from kainite.log.state.backlog import LogBacklog, OpenBacklog
from kainite.log.state.folded import FoldedLog
from kainite.log.state.summary import DurableMarks, LogSummary, OwnersFigures, ShardFigure, as_text, summary_of
from kainite.observe.meter import SILENT, Meter
from kainite.owner.append import PartitionWriter, take_steps_async
from kainite.owner.append_queue import AppendQueue, PendingAppend
from kainite.owner.audit.trail import AuditTrail
from kainite.owner.collected_stream import stream_entries
from kainite.owner.ending import Ending
from kainite.owner.loading import load_mounted
from kainite.owner.looking import Looking
from kainite.owner.mount import Mount
from kainite.owner.owner_tasks import OwnerTasks
from kainite.owner.reading_turn import ReadingTurn
from kainite.owner.refit import READ_EVERY_S, Refitting
from kainite.owner.room import OwnersRoom
from kainite.owner.target_outcomes import assignment_entries, tell_change
from kainite.owner.turn_lag import HeldTurn, TurnLag
from kainite.owner.unit_metrics import UnitMetrics
from kainite.owner.upkeep import LogUpkeep
from kainite.owner.watermark_lag import WatermarkLag
from kainite.settings import LogSettings, UowEnd, UowSettings
from kainite.uow.current_catalogue import CurrentCatalogue
from kainite.uow.fragment import Fragment

_logger = logging.getLogger(__name__)


class LogOwner:
    """Owns a log partition while open; implements :class:`~kainite.log.client.LogClient`.

    Use :meth:`serve`, an async context manager. All methods belong to the event loop that opened it.
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
        self._clock = clock
        self._metrics = UnitMetrics(meter, clock)
        self._queue = AppendQueue(state.positions, settings.queue_bytes)
        self._room = OwnersRoom(self._queue, state, settings, clock)
        self._writer = PartitionWriter(
            store, mounted, state.next_id, "log", _logger, self._tell_followers, self._summary
        )
        self._marks = DurableMarks(state)
        self._tasks = OwnerTasks(self._queue.fail, meter)
        self._waiting = Waiting(uow.timeout, clock)
        self._watermark = Watermark(clock, lambda: state.awaited)
        self._lag = WatermarkLag(self._watermark, uow, clock)
        self._turns = TurnLag(self._watermark, uow, clock)
        self._reading_turn = ReadingTurn(self._watermark, self._turns, settings, clock)
        self._ending = Ending(self._watermark, uow)
        self.looking = Looking(clock, settings.poll, several=bool(settings.targets))
        self._upkeep = LogUpkeep(
            store, settings, uow, mounted, audit, self._waiting, self._watermark.reported, self.looking
        )
        self.state = state
        """The folded log, ahead of the store by the queued entries."""
        self.followers: set[Callable[[Batch], None]] = set()
        """Functions that are called with each batch that becomes durable, in order; each must return at once."""
        self.refitting: Refitting | None = None
        """Judges misfits again; None while no catalogue is known (:meth:`judge_by`)."""
        if arrivals := [unit.arrived_ms for unit in state.open.values() if unit.arrived_ms is not None]:
            self._watermark.learn(max(arrivals))  # no other record may come

    def __repr__(self) -> str:
        return f"<LogOwner {self._mount!r} next={self.state.next_id} queued={len(self._queue)}>"

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(
        cls,
        store: LogStore,
        settings: LogSettings,
        uow: UowSettings,
        mounted: Mount,
        *,
        audit: AuditTrail | None = None,
        clock: Callable[[], float] = boot_seconds,
        meter: Meter = SILENT,
    ) -> AsyncIterator[LogOwner]:
        """Loads the state of a partition that is mounted, and serves appends; releases the partition at the end.

        Args:
            store, settings, uow: the log's store, and the settings of the log and of its units.
            mounted: the hold on the partition.
            audit: gets the units before they leave the log; None means that nothing keeps them.
            clock: measures leases, in seconds.
            meter: takes the metrics.

        Raises:
            LogFencedError, LogUnavailableError, LogCorruptError: the state was not loaded.
        """
        collect_rarely()
        state = await load_mounted(store, settings, mounted)
        event(_logger, logging.INFO, "log mounted", partition=settings.partition, generation=mounted.generation,
              next_id=state.next_id, open_units=len(state.open), units=len(state.units),
              names=len(state.recent))  # fmt: skip
        owner = cls(store, settings, uow, mounted, state, audit, clock, meter)
        owner._start()
        try:
            if state.targets.assignment != settings.targets:
                before = state.targets.assignment
                await owner.write(lambda state: assignment_entries(state, settings.targets))
                tell_change(before, settings.targets, settings.partition)
            yield owner
        finally:
            await owner._close()

    @property
    def generation(self) -> int:
        return self._mount.generation

    @property
    def durable_id(self) -> int:
        """Returns the id after the last entry that is durable and may be acknowledged."""
        return self._writer.next_id

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
        return self._lag.held_by(self.state) or self._turns.held_by(self.state)

    async def failed(self) -> KainiteError:
        """Waits until the owner cannot go on, and returns the error: most likely it was fenced."""
        return await self._tasks.failed()

    def give_up(self, why: str) -> None:
        """Ends the owner, as a person has asked: another process may own the log at once."""
        self._tasks.fail(LogHandedOverError(why))

    async def position(self, shard_id: str) -> Position | None:
        return await self._queue.position(shard_id)

    async def begin(self, at_ms: int, stream: str = "") -> int:
        def decided(state: FoldedLog) -> Sequence[Entry]:
            if stream not in state.awaited:
                self._watermark.reported.expect_anew(stream)
            return begin(state, at_ms, epoch_ms(), stream)

        await self.write(decided)
        return self.state.started.get(stream, at_ms)

    async def append(
        self,
        shard_id: str,
        first: Position,
        last: Position,
        fragments: Sequence[Fragment],
        after: Position | None = None,
    ) -> None:
        if not self._is_recognised(shard_id, last):
            await self.room()
        if self._is_recognised(shard_id, last):  # perhaps by a copy that was folded while this one waited
            await self.position(shard_id)
            return
        if (why := _why_not_next(self.state.positions.get(shard_id), after, first)) is not None:
            raise LogRequestError(f"shard {shard_id}: records {first} to {last} {why}; read on behind its position")
        if fragments and (arrived_ms := fragments[0].arrived_ms) is not None:
            self._watermark.learn(arrived_ms)
        try:
            entries = self._decided(lambda state: collect(state, self._uow, shard_id, last, fragments, epoch_ms()))
        except Exception as error:
            raise LogAppendError(
                f"the log's owner cannot decide on records {first.sequence} to {last.sequence} of shard {shard_id}, "
                f"an error in Kainite: {error!r}"
            ) from error
        self._ending.collected()
        await self._enqueue(entries)

    async def room(self) -> None:
        """Waits until an append would be taken at once: the queue and the backlog have room.

        Raises:
            LogError: the owner has failed.
        """
        await self._room.for_an_append()

    def backlog(self) -> LogBacklog | OpenBacklog | None:
        """Returns the backlog of units while it keeps appends, or shards that are ahead, waiting; None for neither."""
        return self._room.backlog() or self._reading_turn.backlog(self.state)

    @property
    def hold_ms(self) -> int | None:
        return self._reading_turn.hold_ms(self.state)

    def _is_recognised(self, shard_id: str, last: Position) -> bool:
        """Returns whether an append up to ``last`` was folded before."""
        reached = self.state.positions.get(shard_id)
        return reached is not None and last <= reached

    def report(self, report: ReadingReport) -> None:
        self._waiting.report(self._watermark.report(report))
        self._ending.reported()

    @contextlib.contextmanager
    def asking(self, ask: Callable[[], None]) -> Iterator[None]:
        """Calls ``ask``, while the context is entered, when a unit waits for a report of how far shards are read.

        ``ask`` returns at once, and need not lead to a report: readers report by themselves, too.
        """
        self._ending.readers.add(ask)
        try:
            yield
        finally:
            self._ending.readers.discard(ask)

    async def write(self, decide: Callable[[FoldedLog], Sequence[Entry]]) -> None:
        """Appends entries of the owner's own, decided on the present state.

        Returns when the entries are durable, and when all entries that the decision depends on are durable too. The
        second condition holds also if the decision is to append nothing.
        """
        await self._room.for_own_entries()
        if entries := self._decided(decide):
            await self._enqueue(entries)
        else:
            await self._queue.flush()

    def _decided(self, decide: Callable[[FoldedLog], Sequence[Entry]]) -> Sequence[Entry]:
        """Returns the entries that ``decide`` has folded; the owner fails where ``decide`` raises after it folded some.

        Such entries never come into the queue. Every later entry would have another transaction id than its fold. The
        next owner begins with what is durable; what the decision was made for, whoever asked is told
        (:mod:`kainite.peers.sharing.refused_appends`).
        """
        next_id = self.state.next_id
        try:
            return decide(self.state)
        except BaseException as error:
            if self.state.next_id != next_id:
                _logger.exception("log's owner gives up its state")
                self._tasks.fail(LogUnavailableError(f"the log's owner broke in the midst of a decision: {error!r}"))
            raise

    async def _enqueue(self, entries: Sequence[Entry]) -> None:
        began = self._clock()
        await self._queue.add(entries).durable()
        self._metrics.appended(self._clock() - began)

    def _start(self) -> None:
        """Starts the owner's tasks."""
        tasks = self._tasks
        tasks.start(self._write_batches)
        tasks.start(lambda: take_steps_async(self._writer.heartbeat_steps(self._settings.heartbeat)))
        tasks.repeat(partial(self._upkeep.run, self), "log upkeep put off", 0.0)
        tasks.start(lambda: self._metrics.sample_on(self._sample))
        if self._uow.end is UowEnd.WATERMARK:
            tasks.repeat(partial(self._ending.run, self), "units not ended", self._settings.poll)

    def summary(self) -> LogSummary:
        """Returns the log's figures as they are now."""
        figures = OwnersFigures(
            epoch_ms(),
            self._marks.now(self.state, self.durable_id),
            len(self._queue),
            str(self.backlog() or ""),
            str(self._lag.long_held_by(self.state) or self._turns.held_by(self.state) or ""),
            tuple(ShardFigure(shard, behind) for shard, behind in self._waiting.behind().items()),
        )
        return summary_of(self.state, figures)

    def _summary(self) -> str:
        return as_text(self.summary())

    def _sample(self) -> tuple[FoldedLog, float]:
        self._turns.look(self.state)
        self._reading_turn.tell(self.state)
        return self.state, self._lag.seconds(self.state)

    async def _write_batches(self) -> None:
        clock = asyncio.get_running_loop().time
        next_put = 0.0
        while True:
            await self._queue.filled()
            await asyncio.sleep(next_put - clock())
            next_put = clock() + self._settings.put_interval
            await self._put(self._queue.pack(self._settings.batch_bytes))

    async def _put(self, packed: Sequence[PendingAppend]) -> None:
        entries = tuple(entry for pending in packed for entry in pending.entries)
        began = self._clock()
        await take_steps_async(self._writer.append_steps(entries))
        self._metrics.durable(entries, sum(pending.size for pending in packed), self._clock() - began)
        self._queue.became_durable(packed)

    def _tell_followers(self, batch: Batch) -> None:
        for follower in tuple(self.followers):
            follower(batch)

    async def _close(self) -> None:
        """Stops the tasks and releases the mount; does not wait for queued appends, which are not acknowledged."""
        unforeseen = await self._tasks.end(LogUnavailableError("the log's owner has stopped"))
        if not isinstance(self._queue.error, LogFencedError):
            with contextlib.suppress(KainiteError):
                await asyncio.to_thread(self._mount.release)
        for error in unforeseen:
            raise error


def _why_not_next(reached: Position | None, after: Position | None, first: Position) -> str | None:
    """Returns why an append does not follow what the log has of its shard; None where it does.

    Without this check an append far behind the shard's position would make all records up to it count as copies.
    """
    if reached is not None and first <= reached:
        return f"overlap what the log has (up to {reached})"
    if after != reached:
        return f"follow {after or 'nothing'}, and the log has {f'records up to {reached}' if reached else 'none'}"
    return None
