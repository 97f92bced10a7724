"""The owner of a log partition: answers from memory, writes packed batches, one at a time.

Appends are decided and folded at once (:mod:`kainite.log.owner.collect`) and queued; while a batch is
on its way to the store, what comes meanwhile is packed into the next one (group commit). Nothing
is acknowledged before its batch is durable and our lease was still running after the store's
reply. The state in memory is therefore ahead of the store by what is queued; when the owner
stops or is fenced, that part was never acknowledged, and its records are delivered again.

::

    append ─► decide, fold ─► queue ─► batch ─► PutItem ─► lease valid? ─► acknowledge
                                          ▲        │ one in flight
                                          └────────┘

What a crash leaves behind, step by step:

* before PutItem     nothing; the children's records are delivered again;
* after PutItem      the batch; records delivered again are before the shard's position;
* fenced             the batch in flight met a fence: :class:`LogFencedError` to all who wait.

Beside appends the owner does four things on a timer: it takes outcomes over from the apply job's
log partition, answers requests, expires units that never complete, and now and then appends a
snapshot, after which it truncates (:mod:`kainite.log.owner.upkeep`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from kainite.base.clock import boot_seconds, epoch_ms
from kainite.base.errors import (
    KainiteError,
    LogError,
    LogFencedError,
    LogHeldError,
    LogRequestError,
    LogUnavailableError,
)
from kainite.base.logs import event
from kainite.base.position import Position
from kainite.log.audit.trail import AuditTrail
from kainite.log.format.entry import Entry
from kainite.log.owner.append import PartitionWriter, take_steps_async
from kainite.log.owner.collect import collect
from kainite.log.owner.mount import LeaseWatch, Mount, mount
from kainite.log.owner.upkeep import LogUpkeep
from kainite.log.state.folded import FoldedLog
from kainite.log.state.loading import load_state
from kainite.log.store.contract import LogStore
from kainite.settings import LogSettings, UowSettings
from kainite.uow.fragment import Fragment

_logger = logging.getLogger(__name__)

ENTRY_OVERHEAD = 200
"""Bytes that an entry takes beside its data, roughly, for the queue's bound and a batch's size."""


@dataclass(slots=True)
class _Pending:
    """One append's entries, which must become durable together."""

    entries: Sequence[Entry]
    size: int
    durable: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class LogOwner:
    """Owns a log partition while open; keeps :class:`~kainite.log.client.LogClient`.

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
    ) -> None:
        self._store = store
        self._settings = settings
        self._uow = uow
        self._mount = mounted
        self._audit = audit
        self._queue: deque[_Pending] = deque()
        self._queued_bytes = 0
        self._changed = asyncio.Condition()
        self._writer = PartitionWriter(store, mounted, state.next_id, "log", _logger)
        self._failure: asyncio.Future[KainiteError] = asyncio.get_running_loop().create_future()
        self._waking: asyncio.Future[None] | None = None
        self.state = state
        """The folded log, ahead of the store by what is queued."""

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
    ) -> AsyncIterator[LogOwner]:
        """Create the store, mount the partition (waiting while another owner's lease runs), serve.

        Args:
            audit: where units go before they leave the log; None: nowhere.
            stop: ends that waiting.

        Raises:
            LogHeldError: ``stop`` was set while another owner's lease ran.
            LogFencedError: another owner took the partition while we mounted it.
            LogCorruptError: the log does not read back as written.
        """
        await asyncio.to_thread(store.create)
        mounted = await _mount_patiently(store, settings, stop or asyncio.Event(), clock)
        state = await asyncio.to_thread(load_state, store, settings.partition, dedup_window=uow.dedup_window)
        event(_logger, logging.INFO, "log mounted", partition=settings.partition, generation=mounted.generation,
              next_id=state.next_id, open_units=len(state.open), units=len(state.units))  # fmt: skip
        owner = cls(store, settings, uow, mounted, state, audit)
        tasks = [asyncio.create_task(task) for task in (owner._write_batches(), owner._heartbeat(), owner._upkeep())]
        for task in tasks:
            task.add_done_callback(owner._ended)
        try:
            yield owner
        finally:
            await owner._close(tasks)

    @property
    def generation(self) -> int:
        return self._mount.generation

    async def failed(self) -> KainiteError:
        """Wait until the owner cannot go on, and return why: it was fenced, most likely."""
        return await asyncio.shield(self._failure)

    async def position(self, shard_id: str) -> Position | None:
        return self.state.positions.get(shard_id)

    async def append(self, shard_id: str, first: Position, last: Position, fragments: Sequence[Fragment]) -> None:
        await self._room()
        reached = self.state.positions.get(shard_id)
        if reached is not None and last <= reached:
            await self._flush()
            return
        if reached is not None and first <= reached:
            raise LogRequestError(
                f"shard {shard_id}: records {first.sequence} to {last.sequence} overlap what the log has "
                f"(up to {reached.sequence}); cut the batch there"
            )
        await self._enqueue(collect(self.state, self._uow, shard_id, last, fragments, epoch_ms()))

    async def write(self, decide: Callable[[FoldedLog], Sequence[Entry]]) -> None:
        """Append entries of the owner's own, decided on the state as it is; returns when durable."""
        await self._room()
        await self._enqueue(decide(self.state))

    async def _enqueue(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        size = sum(len(entry.data) + 8 * (len(entry.written) + len(entry.read)) + ENTRY_OVERHEAD for entry in entries)
        pending = _Pending(entries, size)
        self._queue.append(pending)
        self._queued_bytes += size
        await self._wake()
        await asyncio.shield(pending.durable)

    async def _room(self) -> None:
        """Wait until the queue takes more; raises when the owner has failed."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._failure.done() or self._queued_bytes < self._settings.queue_bytes
            )
        if self._failure.done():
            raise self._failure.result()

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _flush(self) -> None:
        """Wait until everything queued so far is durable."""
        if self._queue:
            await asyncio.shield(self._queue[-1].durable)

    async def _write_batches(self) -> None:
        clock = asyncio.get_running_loop().time
        next_put = 0.0
        try:
            while True:
                async with self._changed:
                    await self._changed.wait_for(lambda: bool(self._queue))
                await asyncio.sleep(next_put - clock())
                next_put = clock() + self._settings.put_interval
                await self._put(self._pack())
        except KainiteError as error:
            self._fail(error)

    def _pack(self) -> list[_Pending]:
        """As many appends as one batch takes; always at least one."""
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
        await take_steps_async(self._writer.append_steps(entries))
        for pending in packed:
            self._queue.popleft()
            self._queued_bytes -= pending.size
            if not pending.durable.done():
                pending.durable.set_result(None)
        await self._wake()

    async def _heartbeat(self) -> None:
        try:
            await take_steps_async(self._writer.heartbeat_steps(self._settings.heartbeat))
        except LogFencedError as error:
            self._fail(error)

    async def _upkeep(self) -> None:
        upkeep = LogUpkeep(self._store, self._settings, self._uow, self._mount, self._audit)
        while True:
            await asyncio.sleep(self._settings.poll)
            try:
                await upkeep.run_once(self)
            except LogUnavailableError as error:
                event(_logger, logging.WARNING, "log upkeep put off", error=error)
            except KainiteError as error:
                self._fail(error)
                return

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A task that ends by an error of any kind takes the owner with it; it must not be missed in silence."""
        if not task.cancelled() and (error := task.exception()) is not None:
            known = error if isinstance(error, KainiteError) else LogError(f"the log's owner broke: {error!r}")
            self._fail(known)

    def _fail(self, error: KainiteError) -> None:
        if self._failure.done():
            return
        self._failure.set_result(error)
        self._waking = asyncio.ensure_future(self._wake())
        for pending in self._queue:
            if not pending.durable.done():
                pending.durable.set_exception(error)
                pending.durable.exception()  # an append that nobody waits for any more is no unhandled error

    async def _close(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Stop. What is queued is not waited for: nobody was told that it is durable."""
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        unexpected = [result for result in results if isinstance(result, Exception)]
        self._fail(LogUnavailableError("the log's owner has stopped"))
        if self._waking is not None:
            await self._waking
        if not isinstance(self._failure.result(), LogFencedError):
            with contextlib.suppress(KainiteError):
                await asyncio.to_thread(self._mount.release)
        for error in unexpected:
            raise error


async def _mount_patiently(
    store: LogStore, settings: LogSettings, stop: asyncio.Event, clock: Callable[[], float]
) -> Mount:
    watch = LeaseWatch(clock)
    told = False
    while True:
        try:
            return await asyncio.to_thread(
                mount, store, settings.partition, settings.owner, settings.lease, watch, clock
            )
        except LogHeldError as error:
            if stop.is_set():
                raise
            if not told:
                event(_logger, logging.WARNING, "waiting for the log", error=error)
                told = True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(settings.lease / 10, 1.0)):
                    await stop.wait()
