"""Holds leases for this worker: takes them, renews them, and tells who may read what.

A lease's states here: *held*, waiting for its parents → *started* (``Gained`` was told) → gone, by
one of: ``Lost`` was told; the consumer released it; this worker closed.

Invariants:

* A shard is told as gained only when every parent that has a lease stands at SHARD_END.
* A lease is believed to be held for the failover time after the *start* of its last successful
  write, by this host's clock; other workers count from when they saw that write, which is later.
  So two workers never both believe it, even if a host was suspended.
* :class:`HeldLease` is one acquisition: a checkpoint through the object of an earlier one is
  refused, also when the same worker has taken the lease again since.
* Writes to one lease follow each other (its lock), or they would trip over each other's counter.

What a crash leaves behind: owned leases, which another worker (or this one under another id)
takes after the failover time, and this one under the same id at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kainite.clock import boot_seconds
from kainite.errors import KainiteError, LeaseLostError, LeaseTableUnavailableError
from kainite.kinesis.client import StreamClient
from kainite.kinesis.failures import backoff
from kainite.kinesis.shards import Shard, may_start
from kainite.leases.checkpoint import Checkpoint
from kainite.leases.lease import Lease
from kainite.leases.sync import begin_children, create_missing, delete_finished
from kainite.leases.table import LeaseTable
from kainite.leases.taking import Seen, choose, observe
from kainite.logs import event
from kainite.settings import LeaseSettings, StreamSettings

logger = logging.getLogger(__name__)

FIRST_TRIES = 20
"""How often the first round may fail before the worker gives up; later ones go on for ever."""


class HeldLease:
    """One acquisition of a lease; compared by identity."""

    __slots__ = ("lease", "lock", "renewed_at", "started")

    def __init__(self, lease: Lease, renewed_at: float) -> None:
        self.lease = lease
        self.renewed_at = renewed_at
        self.started = False
        self.lock = asyncio.Lock()

    @property
    def shard_id(self) -> str:
        return self.lease.key

    @property
    def checkpoint(self) -> Checkpoint:
        """The latest one stored."""
        return self.lease.checkpoint


@dataclass(frozen=True, slots=True)
class Gained:
    """The shard may be read at once, from ``lease.checkpoint``."""

    lease: HeldLease


@dataclass(frozen=True, slots=True)
class Lost:
    """The shard is another worker's now, or may be: stop, and write nothing more for it."""

    lease: HeldLease


class LeaseKeeper:
    """See the module for states and invariants.

    Args:
        table: the lease table.
        stream: whose shards the leases are for.
        leases: this worker's id and limits.
        stream_settings: initial position, and how often shards and parents are looked at.
        clock: seconds, never running backwards, and running on while the host is suspended.
    """

    def __init__(
        self,
        table: LeaseTable,
        stream: StreamClient,
        leases: LeaseSettings,
        stream_settings: StreamSettings,
        *,
        clock: Callable[[], float] = boot_seconds,
    ) -> None:
        self._table = table
        self._stream = stream
        self._settings = leases
        self._stream_settings = stream_settings
        self._clock = clock
        self._held: dict[str, HeldLease] = {}
        self._seen: dict[str, Seen] = {}
        self._paused: dict[str, float] = {}
        self._sync_due = clock()
        self._wake = asyncio.Event()
        # Bounded by use: one Gained and one Lost for each acquisition, and acquisitions are rate-limited.
        self._events: asyncio.Queue[Gained | Lost] = asyncio.Queue()

    @property
    def held(self) -> tuple[HeldLease, ...]:
        return tuple(self._held.values())

    async def next(self) -> Gained | Lost:
        """What happened next."""
        return await self._events.get()

    async def run(self) -> None:
        """Take and renew until cancelled; whatever is held then stays held for :meth:`close`.

        Raises:
            KainiteError: something that waiting does not mend, or that has lasted from the start.
        """
        tasks = (
            asyncio.create_task(self._keep_renewing(), name="lease renewal"),
            asyncio.create_task(self._keep_taking(), name="lease taking"),
        )
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def checkpoint(self, held: HeldLease, checkpoint: Checkpoint) -> None:
        """Store a checkpoint; it is durable on return.

        Raises:
            LeaseLostError: the lease is not this worker's any more.
            LeaseTableError: it could not be stored; the lease is still held if that is retryable.
        """
        async with held.lock:
            self._demand(held)
            began = self._clock()
            stored = await asyncio.to_thread(self._table.checkpoint, held.lease, checkpoint)
            self._written(held, stored, began)
        if stored is None:
            raise self._lost_error(held)

    async def shard_ended(self, held: HeldLease, children: Sequence[Shard]) -> None:
        """Give the children their leases; to be called before the child hears of the shard's end.

        Raises:
            LeaseLostError: the lease is not this worker's any more.
            LeaseTableError, StreamError: it could not be done; it may be tried again if retryable.
        """
        self._demand(held)
        there = await asyncio.to_thread(
            begin_children, self._table, self._stream, self._stream_settings, held.lease, children
        )
        if not there:
            self._lose(held)
            raise self._lost_error(held)

    async def release(self, held: HeldLease, *, pause: float = 0.0) -> None:
        """Let a lease go, after its consumer has stopped; anybody may take it at once.

        Args:
            held: which; one that is lost already is left alone.
            pause: for how many seconds this worker does not take it again.
        """
        if self._held.get(held.shard_id) is not held:
            return
        del self._held[held.shard_id]
        self._paused[held.shard_id] = self._clock() + pause
        await self._evict(held)
        self._wake.set()

    async def close(self) -> None:
        """Release everything, so that other workers need not wait; to be called after :meth:`run` has ended."""
        leases, self._held = self.held, {}
        await asyncio.gather(*(self._evict(held) for held in leases))

    async def _evict(self, held: HeldLease) -> None:
        async with held.lock:
            try:
                evicted = await asyncio.to_thread(self._table.evict, held.lease)
            except LeaseTableUnavailableError as error:
                # Nothing is lost by it: the lease runs out by itself.
                event(logger, logging.WARNING, "lease not released", shard=held.shard_id, error=error)
            else:
                event(logger, logging.INFO, "lease released", shard=held.shard_id, still_ours=evicted)

    async def _keep_taking(self) -> None:
        failures, succeeded = 0, False
        while True:
            self._wake.clear()
            try:
                wait = await self._round(create=not succeeded)
                failures, succeeded = 0, True
            except KainiteError as error:
                failures += 1
                if not error.retryable or (not succeeded and failures >= FIRST_TRIES):
                    raise
                event(logger, logging.WARNING, "leases not looked after", failures=failures, error=error)
                wait = backoff(failures)
            # Not wait_for: Python 3.11's forgets a cancellation that comes as the wait ends.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()

    async def _round(self, *, create: bool) -> float:
        """Synchronize if it is due, take what is free, start what may start; returns how long to rest."""
        leases = await asyncio.to_thread(self._survey, create)
        now = self._clock()
        self._seen = observe(self._seen, leases, now)
        self._paused = {key: until for key, until in self._paused.items() if until > now}
        choice = choose(
            [lease for lease in leases if lease.key not in self._paused],
            self._seen,
            self._held.keys(),
            worker=self._settings.worker_id,
            failover=self._settings.failover,
            max_leases=self._settings.max_leases,
            now=now,
        )
        for lease in choice.take:
            await self._take(lease)
        self._start_ready({lease.key: lease.checkpoint for lease in leases})
        return self._rest(choice.wait)

    def _survey(self, create: bool) -> tuple[Lease, ...]:
        """The table's leases, brought into step with the stream if that is due. Runs in a thread."""
        if create:
            self._table.create()
        leases = self._table.scan()
        if self._clock() < self._sync_due:
            return leases
        listing = create_missing(self._table, self._stream, self._stream_settings, leases)
        if self._settings.cleanup_completed and listing:
            delete_finished(self._table, leases, {shard.id for shard in listing})
        self._sync_due = self._clock() + self._stream_settings.shard_sync
        return self._table.scan()

    async def _take(self, lease: Lease) -> None:
        began = self._clock()
        taken = await asyncio.to_thread(self._table.take, lease, self._settings.worker_id)
        if taken is not None:
            self._held[lease.key] = HeldLease(taken, began)
            event(logger, logging.INFO, "lease taken", shard=lease.key, checkpoint=taken.checkpoint, before=lease.owner)

    def _start_ready(self, checkpoints: dict[str, Checkpoint]) -> None:
        for held in self.held:
            if not held.started and may_start(held.lease.parents, checkpoints):
                held.started = True
                self._events.put_nowait(Gained(held))

    def _rest(self, until_expiry: float | None) -> float:
        now = self._clock()
        waits = [self._settings.failover * 2, self._sync_due - now]
        waits += [until - now for until in self._paused.values()]
        waits += [] if until_expiry is None else [until_expiry]
        if not all(held.started for held in self.held):
            waits.append(self._stream_settings.parent_poll)
        return max(min(waits), 0.05)

    async def _keep_renewing(self) -> None:
        interval = self._settings.failover / 3
        while True:
            await asyncio.sleep(interval)
            await asyncio.gather(*(self._renew(held, interval) for held in self.held))

    async def _renew(self, held: HeldLease, interval: float) -> None:
        async with held.lock:
            began = self._clock()
            # A checkpoint has renewed it, or it has gone while this waited for the lock.
            if began - held.renewed_at < interval / 2 or self._held.get(held.shard_id) is not held:
                return
            if began - held.renewed_at >= self._settings.failover:
                self._lose(held)
                return
            try:
                async with asyncio.timeout(self._settings.failover - (began - held.renewed_at)):
                    stored = await asyncio.to_thread(self._table.renew, held.lease)
            except (LeaseTableUnavailableError, TimeoutError) as error:
                event(logger, logging.WARNING, "lease not renewed", shard=held.shard_id, error=repr(error))
                return
            self._written(held, stored, began)

    def _written(self, held: HeldLease, stored: Lease | None, began: float) -> None:
        if stored is None:
            self._lose(held)
        else:
            held.lease, held.renewed_at = stored, began

    def _demand(self, held: HeldLease) -> None:
        """Raise LeaseLostError unless this acquisition is alive."""
        if self._held.get(held.shard_id) is held and self._clock() - held.renewed_at < self._settings.failover:
            return
        self._lose(held)
        raise self._lost_error(held)

    def _lose(self, held: HeldLease) -> None:
        if self._held.get(held.shard_id) is held:
            del self._held[held.shard_id]
            event(logger, logging.WARNING, "lease lost", shard=held.shard_id, checkpoint=held.checkpoint)
            if held.started:
                self._events.put_nowait(Lost(held))
            self._wake.set()

    def _lost_error(self, held: HeldLease) -> LeaseLostError:
        return LeaseLostError(
            f"the lease of shard {held.shard_id} is not worker {self._settings.worker_id!r}'s any more"
        )
