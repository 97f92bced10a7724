"""A program's connection to an application's partition: appends transactions, and applies those that the owner feeds.

::

    find the owner ─► connect ─► mount ─► feed: apply, raise the mark ─► append
         ▲                                                     │
         └───────── pause ◄── cut, refused, not the owner ◄────┘

The mark is the application's own, in its store (:class:`~kainite.waltz.context.Application`), and is
asked for at each mount. So a program that is killed between any two steps goes on where its store is.

============================================  =======================================================================
what happens                                  why a transaction is appended once, and applied once
============================================  =======================================================================
the connection is cut with appends under way  they wait for the next mount. What the owner fed by then was appended;
                                              the owner has no other append of this client's any more, so the rest is
                                              made again (:mod:`kainite.waltz.service`)
the same, and another client of the same      the next mount is fed behind what this client was fed last, not
state applies them meanwhile                  behind the state's mark; what the state has is passed over
another owner takes over meanwhile            it feeds what became durable before its fence; nothing else ever does
a former owner answers                        its generation is lower than one that was seen: it is not asked
the program is killed before it learns        the transaction may be in the log; it is fed to the next run. Whether to
                                              append it again the program decides by its state
the state's store fails in the midst          the mark was not raised: the transaction is applied again from the mark
the connection is cut in the midst            the application's step is waited for before the mark is asked for again
a transaction is fed twice                    its id is not the one behind the mark: it is passed over
the log lacks what the state has              the mount is refused: LogRequestError; another log's state, most likely
============================================  =======================================================================
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import random
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from kainite.base.address import Address
from kainite.base.errors import KainiteError, LogProtocolError, LogRequestError, LogUnavailableError
from kainite.base.logs import event
from kainite.base.retry import Backoff
from kainite.base.waiting import first_to_end
from kainite.log.format.entry import ReqId
from kainite.peers.access import Access, application_user
from kainite.peers.connection.introduction import Introduction
from kainite.waltz.context import Application, Transaction, TransactionBuilder, TransactionContext
from kainite.waltz.data_reads import DataReads
from kainite.waltz.link import Link, program_link
from kainite.waltz.monitor import AppendOutcome, Fate, Monitor
from kainite.waltz.wire import messages as m

_logger = logging.getLogger(__name__)

FED_AHEAD: Final = 10_000
"""The most transactions in memory that were fed and are not applied yet; without their data."""

UNDER_WAY: Final = 100
"""The most appends that are under way at once."""

BACKOFF: Final = Backoff((0.05, 0.1, 0.2, 0.5, 1.0), jitter=0.5)


class Owner(NamedTuple):
    """The owner of a partition: its address, its generation, and its token; empty where HEAD has none."""

    address: Address
    generation: int
    token: str


Find = Callable[[], Awaitable[Owner]]
"""Finds a partition's owner; raises LogUnavailableError where there is none."""

_Told: TypeAlias = m.FeedData | m.FeedSuspended | m.MountResponse


class ApplicationLog:
    """An application's partition of the log; stays connected in :func:`connected`.

    All methods belong to the event loop on which it was made.
    """

    def __init__(
        self,
        application: Application,
        find: Find,
        partition: int,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
        introduce: Callable[[str], Introduction] | None = None,
    ) -> None:
        self._application = application
        self._find = find
        self._partition = partition
        self._tls = tls
        self._introduce = introduce or partial(Access().introduce, "kainite", application_user(partition))
        self._client = random.SystemRandom().randrange(1, 1 << 31)
        self._sequence = itertools.count(random.SystemRandom().randrange(1 << 30))
        self._connections = itertools.count()
        self._monitor = Monitor()
        self._under_way = asyncio.Semaphore(UNDER_WAY)
        self._changed = asyncio.Condition()
        self._link: Link | None = None  # while mounted
        self._owner: Owner | None = None
        self._generation = 0  # the highest that was seen
        self._failure: KainiteError | None = None
        self._mark = -1
        self._fed = -1  # the last transaction that was fed, or behind which the feed begins

    @property
    def mark(self) -> int:
        """Returns the id of the last transaction that was applied here."""
        return self._mark

    async def submit(self, context: TransactionContext) -> bool:
        """Appends a transaction, again while its context wants it; returns whether it was appended and applied here.

        Raises:
            LogRequestError: the owner cannot append it (too large), or the application's state is of another log.
            LogUnavailableError: the client was closed meanwhile; whether the transaction was appended is unknown.
        """
        async with self._under_way:
            while True:
                outcome = await self._try(context)
                if outcome is None:
                    context.on_completion(False)
                    return False
                if outcome.fate is Fate.APPENDED:
                    context.on_completion(True)
                    await self.applied(outcome.transaction)
                    context.on_application()
                    return True
                if outcome.fate is Fate.REFUSED:
                    if not context.on_lock_failure():
                        context.on_completion(False)
                        return False
                    await self.applied(outcome.transaction)

    async def applied(self, transaction: int) -> None:
        """Waits until a transaction has been applied here.

        Raises:
            LogError: the client is closed, or cannot go on.
        """
        await self._until(lambda: self._mark >= transaction)

    async def _try(self, context: TransactionContext) -> AppendOutcome | None:
        """Makes the transaction and appends it once; returns None if the context does not want it."""
        await self._until(lambda: self._link is not None)
        mark = self._mark
        builder = TransactionBuilder()
        if not await context.execute(builder):
            return None
        await self._until(lambda: self._link is not None)
        assert self._link is not None
        link, req_id = self._link, self._next_id()
        link.send(_append(req_id, mark, builder))
        future = self._monitor.begin(req_id)  # before any part of the answer can come
        with contextlib.suppress(LogUnavailableError):  # then the next mount tells what became of it
            await link.drained()
        return await future

    async def run(self) -> None:
        """Connects again and again; runs until cancelled.

        Raises:
            LogRequestError: the application's state is ahead of the log.
        """
        failures = 0
        try:
            while True:
                before = self._mark
                try:
                    await self._converse()
                except LogRequestError as error:
                    self._failure = error
                    raise
                except Exception as error:
                    failures = 1 if self._mark > before else failures + 1
                    self._tell(error, failures)
                    await asyncio.sleep(BACKOFF.after(failures))
        finally:
            self._failure = self._failure or LogUnavailableError("the log's client is closed")
            self._monitor.close()
            await self._notify()

    def _tell(self, error: Exception, failures: int) -> None:
        known = isinstance(error, KainiteError)
        level = logging.INFO if known and failures < len(BACKOFF.pauses) else logging.WARNING
        event(_logger, level, "log partition left, mounting anew", partition=self._partition, error=error)
        if not known:
            _logger.debug("the application's error", exc_info=error)

    async def _converse(self) -> None:
        """Mounts the partition once, and stays until the connection ends."""
        owner = await self._find()
        if owner.generation < self._generation:
            raise LogUnavailableError(f"a former owner of partition {self._partition} is still named as its owner")
        self._owner, self._generation = owner, owner.generation
        mark = await self._application.mark()
        who = self._introduce(owner.token)
        async with (
            program_link(owner.address, self._tls(), who, self._next_id()) as link,
            program_link(owner.address, self._tls(), who, self._next_id()) as data,
        ):
            reads = DataReads(data)
            told: asyncio.Queue[_Told] = asyncio.Queue(FED_AHEAD)
            self._mark = mark
            self._fed = self._fed_behind(mark)
            link.send(m.MountRequest(self._next_id(), self._fed, next(self._connections)))
            try:
                await first_to_end(self._read(link, told), self._apply(link, told, reads), reads.run())
            finally:
                self._link = None

    def _fed_behind(self, mark: int) -> int:
        """Returns the transaction behind which a mount's feed begins, for a state at ``mark``.

        No append under way was fed yet; a state that other clients share may have its transaction nevertheless.
        """
        return min(mark, self._fed) if len(self._monitor) else mark

    async def _read(self, link: Link, told: asyncio.Queue[_Told]) -> None:
        """Takes the owner's messages, until the connection ends."""
        while True:
            message = await link.next()
            match message:
                case m.FeedData(req_id, transaction_id, _):
                    self._fed = transaction_id
                    self._monitor.fed(req_id, transaction_id)
                    await told.put(message)
                case m.LockFailure(req_id, transaction_id):
                    self._monitor.refused(req_id, transaction_id)
                case m.MountResponse(_, state):
                    await self._mounted(link, state)
                    await told.put(message)
                case m.FeedSuspended():
                    await told.put(message)

    async def _mounted(self, link: Link, state: m.MountState) -> None:
        if state is m.MountState.CLIENT_AHEAD:
            raise LogRequestError(
                f"the application has applied transaction {self._mark} of log partition {self._partition}, and the log"
                " does not have it: its state belongs to another log"
            )
        if state is m.MountState.NOT_READY:
            raise LogUnavailableError(f"log partition {self._partition} is not ready at its owner")
        self._monitor.lose_all()
        self._link = link
        await self._notify()

    async def _apply(self, link: Link, told: asyncio.Queue[_Told], reads: DataReads) -> None:
        """Applies the fed transactions, in order, and asks for more when all are applied."""
        while True:
            message = await told.get()
            if not isinstance(message, m.FeedData):
                link.send(m.FeedRequest(self._next_id(), self._mark))
            elif message.transaction_id > self._mark + 1:
                raise LogProtocolError(f"transaction {message.transaction_id} is fed behind {self._mark}")
            elif message.transaction_id == self._mark + 1:
                await self._apply_one(message, reads)

    async def _apply_one(self, fed: m.FeedData, reads: DataReads) -> None:
        async def read() -> bytes:
            return await reads.data(self._next_id(), fed.transaction_id)

        await _whole(self._application.apply(Transaction(fed.transaction_id, fed.header, read)))
        self._mark = fed.transaction_id
        await self._notify()

    def _next_id(self) -> ReqId:
        return ReqId(self._client, self._generation, self._partition, next(self._sequence) & 0x7FFFFFFF)

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._failure is not None or condition())
        if self._failure is not None and not condition():
            raise self._failure

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def _append(req_id: ReqId, mark: int, builder: TransactionBuilder) -> m.AppendRequest:
    write, read, append = map(tuple, (builder.write_locks, builder.read_locks, builder.append_locks))
    return m.AppendRequest(req_id, mark, write, read, append, builder.header, builder.data)


async def _whole(work: Awaitable[None]) -> None:
    """Waits until work has ended, also when cancelled: the work must not go on beside the next step."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait({working})
        if not working.cancelled():
            working.exception()  # marks it as handled
        raise


@contextlib.asynccontextmanager
async def connected(log: ApplicationLog) -> AsyncIterator[ApplicationLog]:
    """Keeps a client connected until the end."""
    running = asyncio.create_task(log.run(), name="log client")
    try:
        yield log
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
