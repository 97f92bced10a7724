"""A follower's connection at the log's owner: sends the batches of the queue, and takes the follower's messages.

One task sends the batches in the queue's order, and says once a second up to which id it has sent them; the connection
ends with the task. A follower that reads nothing holds up its own task alone: the queue is bounded, and the server cuts
a follower that says nothing for some seconds (:data:`~kainite.peers.messages.CLIENT_LIMITS`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Final

from kainite.base.errors import LogProtocolError
from kainite.base.waiting import wait_until_set
from kainite.log.format.batch_codec import encode
from kainite.log.format.entry import Batch
from kainite.owner.owner import LogOwner
from kainite.peers.feed.queue import FeedQueue
from kainite.peers.messages import FeedBatch, FeedTaken, FeedUpTo, Follow, Message, OutcomesAt
from kainite.peers.service import Peer

SAY_EVERY_S: Final = 1.0
"""Seconds between two messages that say up to which id all was sent; they also show that the owner lives."""


class FeedSession:
    """One follower's connection.

    Args:
        owner: the log's owner.
        peer: the follower.
        follow: the follower's request.
        observe: called once a second, to measure the followers' lags.
    """

    def __init__(self, owner: LogOwner, peer: Peer[Message], follow: Follow, observe: Callable[[], None]) -> None:
        self._observe = observe
        self._owner = owner
        self._peer = peer
        self._follow = follow
        self.name = follow.name
        self._queue = FeedQueue(owner.durable_id, follow.next_id, follow.credit, follow.payload)
        self._wake = asyncio.Event()

    @property
    def lag(self) -> int:
        """Returns how many durable entries the follower has not folded."""
        return self._queue.lag

    async def send(self) -> None:
        """Sends batches as they become durable, until the connection ends."""
        with self._listening():
            clock = asyncio.get_running_loop().time
            await self._say()
            say_at = clock() + SAY_EVERY_S
            while True:
                self._wake.clear()
                batch = self._queue.next()
                if batch is not None:
                    await self._send_batch(batch)
                now = clock()
                if now >= say_at:  # also between batches: on a slow link the queue may never be empty
                    await self._say()
                    say_at = now + SAY_EVERY_S
                if batch is None:
                    await wait_until_set(self._wake, say_at - now)

    async def take(self, message: Message) -> None:
        """Takes a message of the follower.

        Raises:
            LogProtocolError: the protocol has no such message from a follower.
        """
        match message:
            case FeedTaken(next_id=next_id, size=size):
                self._queue.taken(next_id, size)
                self._wake.set()
            case OutcomesAt(last_id=last_id):
                self._owner.looking.told(last_id)
            case _:
                raise LogProtocolError(f"a follower sent {type(message).__name__}")

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        """Hears of durable batches, and makes the owner wait for the follower's announcements, while entered."""
        # Between the session's beginning and its first step a batch may have become durable.
        self._queue.begin(self._owner.durable_id)
        self._owner.followers.add(self._hear)
        announcing = self._owner.looking.announced() if self._follow.outcomes else contextlib.nullcontext()
        try:
            with announcing:
                yield
        finally:
            self._owner.followers.discard(self._hear)

    def _hear(self, batch: Batch) -> None:
        self._queue.add(batch)
        self._wake.set()

    async def _send_batch(self, batch: Batch) -> None:
        index, payload = encode(batch) if batch.encoded else await asyncio.to_thread(encode, batch)
        sent = payload if self._queue.has_payload(batch) else None
        message = FeedBatch(self._owner.generation, 0, index, sent)
        self._queue.sent(message.size)
        await self._peer.send(message)

    async def _say(self) -> None:
        await self._peer.send(FeedUpTo(self._owner.generation, 0, self._queue.up_to))
        self._observe()
