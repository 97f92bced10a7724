"""Follows the log by its owner's feed: finds the owner by HEAD, connects, and connects again; made for another thread.

:class:`LogFeed` gives the messages of a :class:`~kainite.peers.client.ClientLink` to the
:mod:`~kainite.peers.feed.conversation`, and puts the batches in them into the :mod:`~kainite.peers.feed.buffer`.
:meth:`LogFeed.run` belongs to an event loop, all other methods may be called from any thread; a lock guards the buffer
between them.

=============  =====================================================================================================
phase          left by
=============  =====================================================================================================
looking        HEAD names an owner that is reached from here → connecting
connecting     connected → following; refused, silent, or the owner of another log → looking, after a pause
following      the connection's end; an owner that says nothing for some seconds
               (:data:`~kainite.peers.messages.OWNER_LIMITS`); HEAD names another generation, or none → looking
=============  =====================================================================================================

While following, the feed reads nothing from the store but HEAD, every HEAD_EVERY_S seconds. Otherwise it would listen
for ever to an owner that was overtaken and cannot reach the store, and that says that there is nothing new.

The feed cannot break the fold: every batch that comes is true, however late (:mod:`kainite.peers.feed`), and while no
batch comes the reader reads the store. A crash leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from kainite.base.errors import KainiteError, LogUnavailableError
from kainite.base.logs import event
from kainite.base.retry import Backoff
from kainite.base.waiting import first_to_end
from kainite.log.contract import LogHead, LogStore
from kainite.peers.access import LOG_USER, Access
from kainite.peers.address import OwnerAddress, reached_by
from kainite.peers.client import ClientLink, linked
from kainite.peers.feed.buffer import FeedBuffer, FeedStep
from kainite.peers.feed.conversation import FeedConversation, FeedHeard, UpTo, Wishes
from kainite.peers.messages import OWNER_LIMITS, PEERS, Message

_logger = logging.getLogger(__name__)

HEAD_EVERY_S: Final = 2.0
"""Seconds between two looks at HEAD while following."""

LOOK_FOR_STOP_S: Final = 0.25
"""Seconds after which a thread that waits for news looks whether it should stop."""

BACKOFF: Final = Backoff.doubling(0.1, 5.0, jitter=0.3)
"""The pause between two attempts to connect."""


class StopFlag(Protocol):
    def is_set(self) -> bool: ...


class LogFeed:
    """The feed of one log partition, kept up over changes of its owner.

    Args:
        store: the log's store.
        partition: the log partition's name.
        wishes: the things that the feed asks the owner for.
        access: this process's TLS context, and as whom it connects.
    """

    def __init__(self, store: LogStore, partition: str, wishes: Wishes, access: Access) -> None:
        self._store = store
        self._partition = partition
        self._wishes = wishes
        self._access = access
        self._lock = threading.Lock()
        self._news = threading.Event()
        self._buffer = FeedBuffer()
        self._next_id = self._said = 0
        self._outcomes = -1
        self._closed = False
        self._running: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._conversation: FeedConversation | None = None
        self._link: ClientLink[Message] | None = None
        self._doubt: str | None = None

    # For the thread that folds.

    @property
    def is_following(self) -> bool:
        """Returns whether durable batches come by themselves."""
        with self._lock:
            return self._buffer.is_following

    def take(self, next_id: int) -> FeedStep:
        """Returns the next step of a reader that has every entry below ``next_id``."""
        self._news.clear()
        with self._lock:
            step = self._buffer.take(next_id)
            self._next_id = step.batches[-1].batch.last_id + 1 if step.batches else next_id
            is_new = self._buffer.freed or self._next_id != self._said
        if is_new:
            self._call(self._say_taken)
        return step

    def wait(self, stop: StopFlag, seconds: float) -> None:
        """Waits until a batch has come, or the feed has begun or ended, or ``stop`` is set; at most ``seconds``."""
        left = seconds
        while left > 0 and not stop.is_set() and not self._news.wait(min(left, LOOK_FOR_STOP_S)):
            left -= LOOK_FOR_STOP_S

    def outcomes_at(self, last_id: int) -> None:
        """Announces that the outcomes partition has durable entries up to ``last_id``."""
        if last_id != self._outcomes:
            self._outcomes = last_id
            self._call(self._say_outcomes)

    def doubt(self, why: str) -> None:
        """Ends the connection: the owner's messages contradict the store."""
        with self._lock:
            self._buffer.close()
            self._doubt = why
        self._call(self._hang_up)

    def close(self) -> None:
        """Makes :meth:`run` end soon."""
        self._closed = True
        self._call(self._cancel)

    def _call(self, action: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            if self._loop is not None:
                self._loop.call_soon_threadsafe(action)

    # On the event loop.

    async def run(self) -> None:
        """Follows the log until :meth:`close` is called, or the task is cancelled."""
        self._loop = asyncio.get_running_loop()
        self._running = asyncio.create_task(self._run())
        if self._closed:
            self._cancel()
        with suppress(asyncio.CancelledError):
            await self._running

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()

    async def _run(self) -> None:
        failures, told = 0, ""
        while True:
            try:
                why = await self._look_and_follow()
            except (KainiteError, OSError) as error:
                why = str(error) or type(error).__name__
            finally:
                failures = 1 if self._ended_well() else failures + 1
            if why != told:
                event(_logger, logging.INFO, "log is read, not fed", partition=self._partition, cause=why)
                told = why
            await asyncio.sleep(BACKOFF.after(failures))

    async def _look_and_follow(self) -> str:
        """Follows the owner that HEAD names, until an error ends the connection; returns why no owner is reached."""
        head = await asyncio.to_thread(self._store.read_head, self._partition)
        address = _reached(head)
        if head is None or address is None:
            return "the log has no owner that is reached from here"
        await self._follow(head, address)
        return ""

    def _ended_well(self) -> bool:
        """Notes that the connection has ended; returns whether it has brought a valid message."""
        with self._lock:
            well = self._buffer.is_following and self._doubt is None
            self._buffer.close()
        self._news.set()
        return well

    async def _follow(self, head: LogHead, address: OwnerAddress) -> None:
        """Follows one owner until the connection ends; raises the error that has ended it."""
        introduction = self._access.introduce(self._wishes.name, LOG_USER, address.token)
        async with linked(PEERS, address, introduction, tls=self._access.client_tls(), limits=OWNER_LIMITS) as link:
            self._link, self._doubt = link, None
            self._conversation = FeedConversation(head.generation)
            try:
                await first_to_end(self._converse(link, self._conversation), self._watch(head))
            except LogUnavailableError:
                if self._doubt is not None:
                    raise LogUnavailableError(self._doubt) from None
                raise
            finally:
                self._conversation = self._link = None

    async def _converse(self, link: ClientLink[Message], conversation: FeedConversation) -> None:
        link.send(conversation.follow(self._wishes, self._next_id))
        while True:
            self._hear(conversation.take(await link.next()))

    def _hear(self, heard: FeedHeard) -> None:
        if isinstance(heard, UpTo):
            self._say_alive()
        with self._lock:
            if self._doubt is not None:
                return
            begins = not self._buffer.is_following
            if isinstance(heard, UpTo):
                self._buffer.said_up_to(heard.next_id)
            else:
                self._buffer.add(heard)
            has_news = begins or self._buffer.has_news(self._next_id)
        if begins:
            event(_logger, logging.INFO, "log is followed", partition=self._partition)
        if has_news:
            self._news.set()

    def _say_alive(self) -> None:
        """Says that this side is alive, and announces outcomes once more."""
        if self._link is not None:
            self._link.say_alive()
            self._say_outcomes()

    def _say_taken(self) -> None:
        with self._lock:
            size, self._buffer.freed = self._buffer.freed, 0
            self._said = next_id = self._next_id
        if self._conversation is not None:
            self._send(self._conversation.taken(next_id, size))

    def _say_outcomes(self) -> None:
        if self._conversation is not None and self._outcomes >= 0:
            self._send(self._conversation.outcomes_at(self._outcomes))

    def _send(self, message: Message) -> None:
        if self._link is not None:
            self._link.send(message)

    def _hang_up(self) -> None:
        if self._link is not None:
            self._link.close()

    async def _watch(self, head: LogHead) -> None:
        """Waits until HEAD names another owner, or no owner."""
        while True:
            await asyncio.sleep(HEAD_EVERY_S)
            try:
                now = await asyncio.to_thread(partial(self._store.read_head, self._partition))
            except LogUnavailableError:
                continue
            if now is None or now.generation != head.generation or now.released:
                raise LogUnavailableError("the log has changed its owner")


def _reached(head: LogHead | None) -> OwnerAddress | None:
    """Returns the address at which this process reaches the log's owner; None where it reaches none."""
    if head is None or head.released:
        return None
    return reached_by(head.address, head.token)
