"""A log partition of applications while this process owns it: decides appends, and answers when they are durable.

Such a partition holds transactions alone, so that their ids are dense, as clients expect: a client applies the id
behind its mark and nothing else. It is mounted, fenced and written as the daemon's own is
(:mod:`kainite.owner.mount`, :mod:`kainite.owner.append`), and never truncated.

An append is decided at once, on all appends before it, durable or not: the appends before it become durable before it,
or neither does. Clients are told only of durable transactions:

=======================  ==============================================================================
told                     waits for
=======================  ==============================================================================
a transaction (feed,     its batch, and the lease after it (:mod:`kainite.owner.append`)
data), the mark
a lock failure           the transaction that it names: else a client could wait for one that never comes
a flush, a mount         everything that was appended before it
=======================  ==============================================================================

What is never told, a client learns from the next owner: a mount answers when nothing of the client's is under way any
more, so what the feed has not shown by then was not appended, and is not going to be.

* A crash before the batch is durable loses its appends; their clients append them again.
* A crash after it leaves transactions that nobody was told of; the next owner feeds them.
* An owner that was overtaken meets the fence: it tells nothing more, and its appends under way are not durable. So
  does one that was overtaken while it loaded the locks, though its lease is not renewed before it begins: nothing of
  the partition is ever deleted, what it feeds was durable before its own fence, and a lock of its successor's append
  names a transaction that it never tells of.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kainite.base.errors import KainiteError, LogError, LogFencedError, LogProtocolError, LogUnavailableError
from kainite.base.logs import event
from kainite.log.contract import LogStore
from kainite.log.format.entry import Entry, EntryKind, TransactionMeta
from kainite.owner.append import PartitionWriter, heartbeats_meanwhile, take_steps_async
from kainite.owner.mount import Mount
from kainite.settings import LogSettings
from kainite.uow.touches import Touched
from kainite.waltz.locks import Locks
from kainite.waltz.reading import TRANSACTION_BYTES, Transactions
from kainite.waltz.wire.messages import AppendRequest

_logger = logging.getLogger(__name__)

LOCKS_FROM: Final = 20_000
"""How many transactions before the tail give their locks when a partition is mounted; others give only the floor."""


def application_partition(partition: str, number: int) -> str:
    """Returns the name of the log partition of applications' partition ``number``, beside ``partition``."""
    return f"{partition}:applications:{number}"


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on an append.

    Attributes:
        transaction: the append's own id; after a lock failure, the id of the transaction in the way.
        appended: whether no lock was in the way.
    """

    transaction: int
    appended: bool


class ApplicationPartition:
    """Owns a log partition of applications while open; all methods belong to the event loop that opened it.

    Args:
        store: the partition's store.
        settings: the settings by which batches are written.
        mounted: the hold on the partition.
        locks: the locks as of the tail.
    """

    def __init__(self, store: LogStore, settings: LogSettings, mounted: Mount, locks: Locks) -> None:
        self._settings = settings
        self._mount = mounted
        self._locks = locks
        self._next_id = mounted.first_id
        self._queue: deque[Entry] = deque()
        self._queued_bytes = 0
        self._queued = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._waited_for: dict[int, asyncio.Future[None]] = {}  # waiting futures, by the transaction that they wait for
        self._writer = PartitionWriter(store, mounted, mounted.first_id, f"log partition {mounted.partition}", _logger)
        self._failure: asyncio.Future[KainiteError] = asyncio.get_running_loop().create_future()
        self.transactions = Transactions(store, mounted.partition, mounted.first_id)
        """The durable transactions."""

    def __repr__(self) -> str:
        return f"<ApplicationPartition {self._mount!r} next={self._next_id} queued={len(self._queue)}>"

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, store: LogStore, settings: LogSettings, mounted: Mount) -> AsyncIterator[ApplicationPartition]:
        """Serves a mounted partition while entered, and releases it at the end; appends still queued get no answer.

        Raises:
            LogCorruptError: the partition does not read back as written.
            LogUnavailableError: the store does not answer.
        """
        async with heartbeats_meanwhile(store, mounted, settings.heartbeat, _logger):
            locks = await asyncio.to_thread(_read_locks, store, mounted, LOCKS_FROM)
        partition = cls(store, settings, mounted, locks)
        tasks = [asyncio.create_task(partition._watched(work)) for work in (partition._write, partition._heartbeat)]
        event(_logger, logging.INFO, "log partition mounted", partition=mounted.partition,
              generation=mounted.generation, next_id=mounted.first_id)  # fmt: skip
        try:
            yield partition
        finally:
            await partition._close(tasks)

    @property
    def generation(self) -> int:
        return self._mount.generation

    @property
    def mark(self) -> int:
        """Returns the id of the last durable transaction, −1 for none."""
        return self.transactions.next_id - 1

    async def failed(self) -> KainiteError:
        """Waits until the partition cannot be served any more, and returns the error: most likely it was overtaken."""
        return await asyncio.shield(self._failure)

    async def append(self, request: AppendRequest) -> Decision:
        """Decides an append; the append and its decision become durable later (:meth:`reached`).

        Waits while the queue is full.

        Raises:
            LogProtocolError: the client's mark is beyond the last append.
            LogError: the partition cannot be served any more.
        """
        while self._queued_bytes >= self._settings.queue_bytes and not self._failure.done():
            await self._room.wait()
        self._check()
        if request.mark >= self._next_id:
            raise LogProtocolError(
                f"a client has applied transaction {request.mark}, and {self._next_id - 1} is the last"
            )
        latest = self._locks.latest(_unsigned(request.write_locks, request.read_locks))
        if latest > request.mark:
            return Decision(latest, appended=False)
        written = _unsigned(request.write_locks, request.append_locks)
        meta = TransactionMeta(request.header)
        entry = Entry(EntryKind.TRANSACTION, meta, Touched(written), data=request.data, req_id=request.req_id)
        transaction = self._next_id
        self._next_id += 1
        self._locks.note(transaction, written)
        self._queue.append(entry)
        self._queued_bytes += _size(entry)
        self._queued.set()
        if self._queued_bytes >= self._settings.queue_bytes:
            self._room.clear()
        return Decision(transaction, appended=True)

    async def flush(self) -> int:
        """Waits until everything decided so far is durable; returns the mark. Raises LogError as :meth:`reached`."""
        last = self._next_id - 1
        await self.reached(last)
        return self.mark

    async def reached(self, transaction: int) -> None:
        """Waits until a transaction is durable.

        Raises:
            LogError: the partition cannot be served any more.
        """
        self._check()
        if self.mark >= transaction:
            return
        durable = self._waited_for.get(transaction)
        if durable is None:
            durable = self._waited_for[transaction] = asyncio.get_running_loop().create_future()
        await asyncio.shield(durable)

    def _check(self) -> None:
        """Raises the error that ended the partition's service, if one has."""
        if self._failure.done():
            raise self._failure.result()

    async def _write(self) -> None:
        """Makes the queued transactions durable, one batch at a time, until an error ends the service."""
        clock = asyncio.get_running_loop().time
        next_put = 0.0
        while True:
            await self._queued.wait()
            await asyncio.sleep(next_put - clock())
            next_put = clock() + self._settings.put_interval
            batch = self._pack()
            await take_steps_async(self._writer.append_steps(batch))
            self._settle(batch)

    def _settle(self, batch: Sequence[Entry]) -> None:
        """Notes that a batch is durable."""
        for entry in batch:
            self._queue.popleft()
            self._queued_bytes -= _size(entry)
        if not self._queue:
            self._queued.clear()
        if self._queued_bytes < self._settings.queue_bytes:
            self._room.set()
        first = self.transactions.next_id
        self.transactions.add(batch)
        for transaction in range(first, self.transactions.next_id):
            durable = self._waited_for.pop(transaction, None)
            if durable is not None and not durable.done():
                durable.set_result(None)

    def _pack(self) -> list[Entry]:
        """Returns as many transactions as one batch takes; always at least one."""
        packed: list[Entry] = []
        size = 0
        for entry in self._queue:
            if packed and size + _size(entry) > self._settings.batch_bytes:
                break
            packed.append(entry)
            size += _size(entry)
        return packed

    async def _heartbeat(self) -> None:
        await take_steps_async(self._writer.heartbeat_steps(self._settings.heartbeat))

    async def _watched(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Does work that ends only with an error, which ends the partition's service."""
        try:
            await work()
        except KainiteError as error:
            self._fail(error)
        except Exception as error:
            self._fail(LogError(f"log partition {self._mount.partition} broke: {error!r}"))

    def _fail(self, error: KainiteError) -> None:
        """Ends the service: all present and later waits raise the error."""
        if not self._failure.done():
            self._failure.set_result(error)
        self._room.set()
        for durable in self._waited_for.values():
            if not durable.done():
                durable.set_exception(error)
                durable.exception()  # marks it as handled: its waiters may have been cancelled
        self._waited_for.clear()

    async def _close(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._fail(LogUnavailableError(f"log partition {self._mount.partition} is not served here any more"))
        if not isinstance(self._failure.result(), LogFencedError):
            with contextlib.suppress(KainiteError):
                await asyncio.to_thread(self._mount.release)


def _unsigned(*locks: Sequence[int]) -> frozenset[int]:
    """Returns locks as unsigned numbers, as entries have them; the protocol's numbers are signed."""
    return frozenset(lock & 0xFFFFFFFF for some in locks for lock in some)


def _size(entry: Entry) -> int:
    return len(entry.data) + 8 * len(entry.touched.written) + TRANSACTION_BYTES


def _read_locks(store: LogStore, mounted: Mount, count: int) -> Locks:
    """Returns the locks as of the tail: exact for the last ``count`` transactions."""
    first = max(mounted.first_id - count, 0)
    locks = Locks(first - 1)
    if first < mounted.first_id:
        for batch in store.read_batches(mounted.partition, first, data=False, strong=True):
            for transaction, entry in batch.entries_from(first):
                locks.note(transaction, entry.touched.written)
    return locks
