"""The daemon's owner of a log partition: answers from memory, writes packed batches, one at a time.

Appends are decided and folded at once (:mod:`kainite.log.collecting.collect`) and queued. While one batch is
in flight to the store, later appends are packed into the next batch (group commit). An append
is acknowledged when its batch is durable and the lease was still running after the store's
reply (:mod:`kainite.owner.append`). The state in memory (*folded*) is therefore ahead of the store (*durable*) by
the queued entries. When the owner stops or is fenced, these were never acknowledged, and their records are delivered
again.

The rule: **nothing is granted on what is folded and not durable.** Decisions about the next entries are made on the
folded state, because these entries become durable after all that they were decided on, or not at all. Whatever leaves
the owner waits until it is durable:

==========================================  ======================================================================
leaves the owner                            waits for
==========================================  ======================================================================
the answer to an append                     its entries; a unit that is dropped as sent again was queued before them
the answer to an append that is recognised  the append that it repeats
a shard's position, by which readers cut,   the shard's queued appends, and is then the durable one: an append may
calls count as known, and checkpoints are   outlive its consumer (the shard's lease lapses while a put hangs, and
granted                                     comes back to this worker)
the answer to a retry or discard            its entry; without one, everything that the answer was decided on
a snapshot's name in HEAD, and truncation   the snapshot's entry; what is still needed is computed as of that entry
HEAD's high-water mark                      nothing: the writer counts durable entries alone
a batch, to who follows the log             its put's answer, and a lease that runs after it: as an acknowledgement
==========================================  ======================================================================

::

    append ─► decide, fold ─► queue ─► batch ─► PutItem ─► lease valid? ─► acknowledge
                                          ▲        │ one in flight
                                          └────────┘

What a crash leaves behind, step by step:

* before PutItem     nothing; the children's records are delivered again;
* after PutItem      the batch; records delivered again are not beyond the shard's position;
* fenced             the batch in flight met a fence: every waiting append raises :class:`LogFencedError`.

Where too many units wait to be applied, appends wait (:mod:`kainite.log.state.backlog`). An append that waits is not
folded: its records are simply not collected yet.

Units that the watermark makes complete are dispatched as soon as it does (:mod:`kainite.owner.ending`).

Beside appends the owner does four things on a timer (:mod:`kainite.owner.upkeep`): it copies outcomes from
the apply job's log partition, answers requests, expires units that never complete, and, after enough entries,
appends a snapshot and truncates.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field

from kainite.base.clock import boot_seconds, epoch_ms
from kainite.base.errors import (
    KainiteError,
    LogCorruptError,
    LogError,
    LogFencedError,
    LogHeldError,
    LogRequestError,
    LogUnavailableError,
)
from kainite.base.garbage import collect_rarely
from kainite.base.logs import event
from kainite.base.position import BEFORE_ALL, Position
from kainite.base.process_identity import ProcessIdentity
from kainite.base.waiting import Changes, wait_until_set
from kainite.log.client import ReadingReport
from kainite.log.collecting.collect import begin, collect
from kainite.log.collecting.waiting import Waiting
from kainite.log.collecting.watermark import Held, Watermark
from kainite.log.contract import LogStore
from kainite.log.format.entry import STREAM, Batch, ControlMeta, Entry, EntryKind, PositionMeta
from kainite.log.state.backlog import LogBacklog, backlog_of, is_full
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.loading import load_state
from kainite.observe.meter import SILENT, Meter
from kainite.owner.append import PartitionWriter, heartbeats_meanwhile, take_steps_async
from kainite.owner.audit.trail import AuditTrail
from kainite.owner.ending import Ending
from kainite.owner.looking import Looking
from kainite.owner.mount import LeaseWatch, Mount, mount
from kainite.owner.refit import READ_EVERY_S, Refitting
from kainite.owner.unit_metrics import UnitMetrics
from kainite.owner.upkeep import LogUpkeep
from kainite.settings import LogSettings, UowEnd, UowSettings
from kainite.uow.current_catalogue import CurrentCatalogue
from kainite.uow.fragment import Fragment
from kainite.uow.packing import Blob

_logger = logging.getLogger(__name__)

ENTRY_OVERHEAD = 200
"""Bytes that an entry takes beside its data, approximately; for the queue's bound and a batch's size."""


LOOKS = 5
"""Most upkeeps in the time of one poll, however often outcomes are announced."""

LONG_BEHIND_S = 60.0
"""Seconds from which a watermark that is behind is told while units wait for it."""

TELL_BACKLOG_S = 60.0
"""Seconds between two warnings that appends wait for the apply job."""


@dataclass(slots=True)
class _Pending:
    """One append's entries, which must become durable together; each who waits for it has a future of its own."""

    entries: Sequence[Entry]
    size: int
    error: KainiteError | None = None
    waiting: list[asyncio.Future[None]] = field(default_factory=list)

    async def durable(self) -> None:
        """Waits until the entries are durable; raises the error of an owner that has failed before."""
        if self.error is not None:
            raise self.error
        waiter = asyncio.get_running_loop().create_future()
        self.waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            self.waiting.remove(waiter)  # others come and go for as long as the store does not answer
            raise

    def end(self, error: KainiteError | None = None) -> None:
        """Tells those who wait that the entries are durable, or that nobody knows whether they ever will be."""
        self.error = error
        for waiter in self.waiting:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)
                waiter.exception()  # marks the error as handled: who waited may be cancelled before its turn


class LogOwner:
    """Owns a log partition while open; implements :class:`~kainite.log.client.LogClient`.

    Use :meth:`open`, an async context manager. All methods belong to the event loop that opened it.
    """

    def __init__(
        self,
        store: LogStore,
        settings: LogSettings,
        uow: UowSettings,
        mounted: Mount,
        state: FoldedLog,
        audit: AuditTrail | None = None,
        clock: Callable[[], float] = boot_seconds,
        meter: Meter = SILENT,
    ) -> None:
        self._metrics = UnitMetrics(meter, clock)
        self._clock = clock
        self._store = store
        self._settings = settings
        self._uow = uow
        self._mount = mounted
        self._audit = audit
        self._waiting = Waiting(uow.timeout, clock)
        self._watermark = Watermark(clock)
        self._ending = Ending(self._watermark, uow)
        self._queue: deque[_Pending] = deque()
        self._queued_bytes = 0
        self._changed = Changes()
        self._durable = dict(state.positions)
        """The shards' durable positions; all that is told of them."""
        self._tell_backlog_at = 0.0
        self._tell_held_at = clock() + LONG_BEHIND_S  # nothing is known of any shard at first
        self._unsettled: dict[str, _Pending] = {}
        """The last queued append of each shard that has one."""
        self._writer = PartitionWriter(store, mounted, state.next_id, "log", _logger, self._tell_followers)
        self._failure: asyncio.Future[KainiteError] = asyncio.get_running_loop().create_future()
        self.followers: set[Callable[[Batch], None]] = set()
        """Each is given the batches that become durable, in order; it must return at once."""
        self.looking = Looking(clock)
        self.state = state
        """The folded log, ahead of the store by the queued entries."""
        if arrivals := [unit.arrived_ms for unit in state.open.values() if unit.arrived_ms is not None]:
            self._watermark.learn(max(arrivals))  # no other record may come
        self.refitting: Refitting | None = None
        """Judges misfits anew; None while no catalogue is known (:meth:`judge_by`)."""
        self._tasks: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"<LogOwner {self._mount!r} next={self.state.next_id} queued={len(self._queue)}>"

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        store: LogStore,
        settings: LogSettings,
        uow: UowSettings,
        *,
        audit: AuditTrail | None = None,
        stop: asyncio.Event | None = None,
        clock: Callable[[], float] = boot_seconds,
        process: ProcessIdentity | None = None,
        meter: Meter = SILENT,
    ) -> AsyncIterator[LogOwner]:
        """Creates the store, mounts the partition (waits while another owner's lease runs), and serves appends.

        Args:
            audit: where units are written before they leave the log; None: nowhere.
            stop: ends the wait for another owner's lease.
            clock: measures leases, in seconds.
            process: identity of the process that owns the log; None: the calling one.
            meter: takes the metrics.

        Raises:
            LogHeldError: ``stop`` was set while another owner's lease ran.
            LogFencedError: another owner mounted the partition at the same time.
            LogCorruptError: the log does not read back as written.
        """
        await asyncio.to_thread(store.create)
        mounted = await _mount_patiently(store, settings, stop or asyncio.Event(), clock, process)
        async with cls.serve(store, settings, uow, mounted, audit=audit, clock=clock, meter=meter) as owner:
            yield owner

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

        Raises:
            LogFencedError, LogUnavailableError, LogCorruptError: the state was not loaded.
        """
        collect_rarely()
        state = await _load(store, settings, uow, mounted)
        event(_logger, logging.INFO, "log mounted", partition=settings.partition, generation=mounted.generation,
              next_id=state.next_id, open_units=len(state.open), units=len(state.units),
              names=len(state.recent))  # fmt: skip
        owner = cls(store, settings, uow, mounted, state, audit, clock, meter)
        sampling = owner._metrics.sample_on(owner._sample)
        for task in (owner._write_batches(), owner._heartbeat(), owner._upkeep(), sampling):
            owner._start(task)
        if uow.end is UowEnd.WATERMARK:
            owner._start(owner._end_units())
        try:
            yield owner
        finally:
            await owner._close(owner._tasks)

    @property
    def generation(self) -> int:
        return self._mount.generation

    @property
    def durable_id(self) -> int:
        """Returns the id behind the last entry that is durable and may be acknowledged."""
        return self._writer.next_id

    @property
    def queued(self) -> tuple[int, int]:
        """Returns how many appends are not durable yet, and their bytes, approximately."""
        return len(self._queue), self._queued_bytes

    async def collect_from(self, stream: str, *, adopt: bool = False) -> None:
        """Notes the stream whose shards are collected; returns when it is durable.

        Another stream may have shards of the same names, and its records, with lower sequence numbers, would be taken
        for collected. So a log is one stream's.

        Args:
            stream: its identity; no other stream ever has the same.
            adopt: take it also where the log has positions of another stream, which are dropped; before any append.

        Raises:
            LogRequestError: the log has positions of another stream.
        """

        def decided(state: FoldedLog) -> Sequence[Entry]:
            journal = Journal(state, epoch_ms())
            if state.stream not in (None, stream) and not adopt:
                raise LogRequestError(
                    f"log partition {self._settings.partition} of {self._settings.table} has collected the stream "
                    f"{state.stream}, and this is {stream}: choose another logPartition, or have the log forget the "
                    "positions in the old stream with kainite log adopt-stream"
                )
            if adopt and state.stream is None:
                # Whose positions they are was never noted: noting it alone would make them the stream's own.
                journal.write(EntryKind.CONTROL, ControlMeta(STREAM, key=""))
            if state.stream != stream:
                journal.write(EntryKind.CONTROL, ControlMeta(STREAM, key=stream))
            return journal.entries

        await self.write(decided)
        if adopt:
            self._durable = dict(self.state.positions)

    def judge_by(self, catalogue: CurrentCatalogue, every: float = READ_EVERY_S) -> None:
        """Judges units that did not fit the catalogue anew, when a person asks and when the catalogue has changed.

        Args:
            catalogue: the target's tables.
            every: seconds between two reads of the catalogue while there are such units.
        """
        self.refitting = Refitting(self._store, self._settings.partition, self._uow, catalogue, self)
        self._start(self._watch_catalogue(self.refitting, every))

    def held_by(self) -> Held | None:
        """Returns what holds the watermark back; None where no unit waits for it."""
        if self._uow.end is not UowEnd.WATERMARK or not self.state.open:
            return None
        return self._watermark.held_by()

    def _sample(self) -> tuple[FoldedLog, float]:
        """Returns the state, and how far the watermark is behind; warns now and then while units wait for it long."""
        held = self.held_by()
        if held is not None and (held.seconds is None or held.seconds >= LONG_BEHIND_S):
            now = self._clock()
            if now >= self._tell_held_at:
                self._tell_held_at = now + TELL_BACKLOG_S
                event(_logger, logging.WARNING, "units wait for a shard to be read", cause=held,
                      units=len(self.state.open))  # fmt: skip
        return self.state, (held.seconds or 0.0) if held is not None else 0.0

    async def failed(self) -> KainiteError:
        """Waits until the owner cannot go on, and returns the error: most likely it was fenced."""
        return await asyncio.shield(self._failure)

    async def position(self, shard_id: str) -> Position | None:
        while (pending := self._unsettled.get(shard_id)) is not None:
            await pending.durable()
        return self._durable.get(shard_id)

    async def append(
        self,
        shard_id: str,
        first: Position,
        last: Position,
        fragments: Sequence[Fragment],
        *,
        started_ms: int | None = None,
    ) -> None:
        if last == BEFORE_ALL and not fragments:
            await self.write(lambda state: begin(state, self._uow, shard_id, epoch_ms(), started_ms))
            return
        if not self._is_recognised(shard_id, last):
            await self.room()
        if self._is_recognised(shard_id, last):
            await self.position(shard_id)
            return
        reached = self.state.positions.get(shard_id)
        if reached is not None and first <= reached:
            raise LogRequestError(
                f"shard {shard_id}: records {first.sequence} to {last.sequence} overlap what the log has "
                f"(up to {reached.sequence}); cut the batch there"
            )
        if fragments and (arrived_ms := fragments[0].arrived_ms) is not None:
            self._watermark.learn(arrived_ms)
        entries = collect(self.state, self._uow, shard_id, last, fragments, epoch_ms(), started_ms)
        self._ending.collected()
        await self._enqueue(entries)

    async def room(self) -> None:
        """Waits until an append would be taken at once: the queue and the backlog have room.

        Raises:
            LogError: the owner has failed.
        """
        await self._room()
        await self._backlog_room()

    def backlog(self) -> LogBacklog | None:
        """Returns what waits to be applied while it keeps appends waiting; None while there is room."""
        return backlog_of(self.state) if is_full(self.state, self._settings) else None

    def _is_recognised(self, shard_id: str, last: Position) -> bool:
        """Returns whether an append up to ``last`` was folded before."""
        reached = self.state.positions.get(shard_id)
        return reached is not None and last <= reached

    def report(self, report: ReadingReport) -> None:
        self._waiting.report(report)
        self._watermark.report(report)
        self._ending.reported()

    @contextlib.contextmanager
    def asking(self, ask: Callable[[], None]) -> Iterator[None]:
        """Has ``ask`` called, while the context is entered, when a unit waits for a report of how far shards are read.

        ``ask`` returns at once, and need not lead to a report: readers report by themselves, too.
        """
        self._ending.readers.add(ask)
        try:
            yield
        finally:
            self._ending.readers.discard(ask)

    async def write(self, decide: Callable[[FoldedLog], Sequence[Entry]]) -> None:
        """Appends entries of the owner's own, decided on the present state.

        Returns when they are durable, and with them everything that they were decided on: also where the decision is
        to append nothing.
        """
        await self._room()
        if entries := decide(self.state):
            await self._enqueue(entries)
        else:
            await self._flush()

    async def _enqueue(self, entries: Sequence[Entry]) -> None:
        size = _size(entries)
        pending = _Pending(entries, size)
        self._queue.append(pending)
        self._queued_bytes += size
        for meta in _positions(entries):
            self._unsettled[meta.shard] = pending
        self._changed.tell()
        began = self._clock()
        await pending.durable()
        self._metrics.appended(self._clock() - began)

    async def _room(self) -> None:
        """Waits until the queue takes more; raises when the owner has failed."""
        if self._queued_bytes >= self._settings.queue_bytes:
            await self._changed.until(lambda: self._failure.done() or self._queued_bytes < self._settings.queue_bytes)
        if self._failure.done():
            raise self._failure.result()

    async def _backlog_room(self) -> None:
        """Waits until fewer units wait to be applied than the bound allows; raises when the owner has failed.

        The owner's own entries (:meth:`write`) do not wait here: outcomes and decisions are what makes room.
        """
        if not is_full(self.state, self._settings):
            return
        self._tell_backlog()
        await self._changed.until(
            lambda: (
                self._failure.done()
                or (self._queued_bytes < self._settings.queue_bytes and not is_full(self.state, self._settings))
            )
        )
        if self._failure.done():
            raise self._failure.result()

    def _tell_backlog(self) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._tell_backlog_at:
            self._tell_backlog_at = now + TELL_BACKLOG_S
            event(_logger, logging.WARNING, "backlog is full", cause=backlog_of(self.state))

    async def _flush(self) -> None:
        """Waits until everything queued so far is durable."""
        if self._queue:
            await self._queue[-1].durable()

    async def _write_batches(self) -> None:
        clock = asyncio.get_running_loop().time
        next_put = 0.0
        try:
            while True:
                await self._changed.until(lambda: bool(self._queue))
                await asyncio.sleep(next_put - clock())
                next_put = clock() + self._settings.put_interval
                await self._put(self._pack())
        except KainiteError as error:
            self._fail(error)

    def _pack(self) -> list[_Pending]:
        """Returns as many appends as one batch takes; always at least one."""
        packed: list[_Pending] = []
        size = 0
        for pending in self._queue:
            if packed and size + pending.size > self._settings.batch_bytes:
                break
            packed.append(pending)
            size += pending.size
        return packed

    async def _put(self, packed: Sequence[_Pending]) -> None:
        entries = tuple(entry for pending in packed for entry in pending.entries)
        began = self._clock()
        await take_steps_async(self._writer.append_steps(entries))
        self._metrics.durable(entries, sum(pending.size for pending in packed), self._clock() - began)
        for pending in packed:
            self._queue.popleft()
            self._queued_bytes -= pending.size
            self._settle(pending)
            pending.end()
        self._changed.tell()

    def _settle(self, pending: _Pending) -> None:
        """Notes the positions of an append that has become durable."""
        for meta in _positions(pending.entries):
            self._durable[meta.shard] = meta.position
            if self._unsettled.get(meta.shard) is pending:
                del self._unsettled[meta.shard]

    def _tell_followers(self, batch: Batch) -> None:
        for follower in tuple(self.followers):
            follower(batch)

    async def _heartbeat(self) -> None:
        try:
            await take_steps_async(self._writer.heartbeat_steps(self._settings.heartbeat))
        except LogFencedError as error:
            self._fail(error)

    async def _upkeep(self) -> None:
        upkeep = LogUpkeep(
            self._store,
            self._settings,
            self._uow,
            self._mount,
            self._audit,
            self._waiting,
            self.looking,
        )
        while True:
            await asyncio.sleep(self._settings.poll / LOOKS)
            await wait_until_set(self.looking.wake, self._settings.poll * (1 - 1 / LOOKS))
            self.looking.wake.clear()
            try:
                await upkeep.run_once(self)
            except LogUnavailableError as error:
                event(_logger, logging.WARNING, "log upkeep put off", error=error)
            except KainiteError as error:
                self._fail(error)
                return

    async def _end_units(self) -> None:
        while True:
            try:
                await self._ending.run(self)
            except LogUnavailableError as error:
                event(_logger, logging.WARNING, "units not ended", error=error)
                await asyncio.sleep(self._settings.poll)
            except KainiteError as error:
                self._fail(error)
                return

    async def _watch_catalogue(self, refitting: Refitting, every: float) -> None:
        while True:
            try:
                await refitting.watch(every)
            except LogUnavailableError as error:
                event(_logger, logging.WARNING, "misfits not judged", error=error)
                await asyncio.sleep(every)
            except KainiteError as error:
                self._fail(error)
                return

    def _start(self, task: Coroutine[None, None, None]) -> None:
        started = asyncio.create_task(task)
        started.add_done_callback(self._ended)
        self._tasks.append(started)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Fails the owner when one of its tasks ended with an error of any kind, so that no task dies unnoticed."""
        if not task.cancelled() and (error := task.exception()) is not None:
            known = error if isinstance(error, KainiteError) else LogError(f"the log's owner broke: {error!r}")
            self._fail(known)

    def _fail(self, error: KainiteError) -> None:
        if self._failure.done():
            return
        self._failure.set_result(error)
        self._changed.tell()
        for pending in self._queue:
            pending.end(error)

    async def _close(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Stops the tasks and releases the mount; does not wait for queued appends, which are not acknowledged."""
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        unexpected = [result for result in results if isinstance(result, Exception)]
        self._fail(LogUnavailableError("the log's owner has stopped"))
        if not isinstance(self._failure.result(), LogFencedError):
            with contextlib.suppress(KainiteError):
                await asyncio.to_thread(self._mount.release)
        for error in unexpected:
            raise error


def _size(entries: Sequence[Entry]) -> int:
    """Returns about how many bytes the entries take; a blob counts once, however many of them share it."""
    size = ENTRY_OVERHEAD * len(entries)
    blob: Blob | None = None
    seen: set[int] = set()
    for entry in entries:
        size += len(entry.data) + 8 * (len(entry.touched.written) + len(entry.touched.read))
        if (piece := entry.piece) is not None and piece.blob is not blob:
            blob = piece.blob
            if id(blob) not in seen:
                seen.add(id(blob))
                size += len(blob.frame)
    return size


async def _load(store: LogStore, settings: LogSettings, uow: UowSettings, mounted: Mount) -> FoldedLog:
    """Returns the log's state; heartbeats keep the mount meanwhile, since a large log takes longer than the lease."""
    try:
        async with heartbeats_meanwhile(store, mounted, settings.heartbeat, _logger):
            state = await asyncio.to_thread(load_state, store, settings.partition, names=True)
    except LogCorruptError:
        # A later owner may have removed what was being read; then its claim is the error.
        await asyncio.to_thread(mounted.renew)
        raise
    # An owner that was fenced while it loaded must not begin: its view of the names may already be another owner's.
    await asyncio.to_thread(mounted.renew)
    return state


def _positions(entries: Sequence[Entry]) -> Iterator[PositionMeta]:
    return (entry.meta for entry in entries if isinstance(entry.meta, PositionMeta))


async def _mount_patiently(
    store: LogStore,
    settings: LogSettings,
    stop: asyncio.Event,
    clock: Callable[[], float],
    process: ProcessIdentity | None,
) -> Mount:
    watch = LeaseWatch(clock)
    told = warned = False
    while True:
        try:
            return await asyncio.to_thread(
                mount, store, settings.partition, settings.owner, settings.lease, watch, clock, process,
                stripes=settings.stripes,
            )  # fmt: skip
        except LogHeldError as error:
            if stop.is_set():
                raise
            if not told:
                event(_logger, logging.WARNING, "waiting for the log", error=error)
                told = True
            if not warned and watch.has_living_namesake(settings.owner):
                warned = True
                event(_logger, logging.ERROR, "another daemon runs under this worker id: give each its own workerId",
                      worker=settings.owner, error=error)  # fmt: skip
            await wait_until_set(stop, min(settings.lease / 10, 1.0))
