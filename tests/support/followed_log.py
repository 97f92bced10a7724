"""A log whose owner others follow, with what reads of DynamoDB they make, and a fold to compare."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

from kainite.base.address import Address
from kainite.base.position import Position
from kainite.log.format.entry import Batch
from kainite.log.state.folded import FoldedLog
from kainite.log.state.followed import FollowedLog
from kainite.log.state.loading import load_state
from kainite.peers.access import Access
from kainite.peers.feed.conversation import Wishes
from kainite.peers.feed.following import LogFeed
from kainite.peers.sharing.shared_log import SharedLog
from kainite.store.memory import MemoryStore
from kainite_spark.driver.follower import LogFollower
from kainite_spark.driver.payloads import Payloads
from support.application_world import Proxy
from support.log_builders import fragment
from support.log_members import SETTINGS, Members, P
from support.next_append import append_next
from support.ports import free_port
from support.waiting import until

LOG = f"{SETTINGS.table}/{P}"


def is_alike(followed: FollowedLog, whole: FoldedLog) -> bool:
    """Returns whether a follower's fold is the log's, as far as the follower folds it."""
    mine, its = ((s.next_id, s.through, dict(s.units), s.operations.pause) for s in (followed, whole))
    parts, its_parts = ((t.assignment, t.through, t.units) for t in (followed.targets, whole.targets))
    return (mine, parts) == (its, its_parts) and followed.schemes.items() >= whole.schemes.items()


class CountingStore:
    """A way to a store that counts the reads of the log's entries."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read_batches(self, *args: Any, **more: Any) -> Iterator[Batch]:
        self.reads += 1
        return self._store.read_batches(*args, **more)


class Followed:
    """A log's follower: the feed, and what folds it."""

    def __init__(self, store: MemoryStore, payload: int = 1 << 16, credit: int = 1 << 20) -> None:
        self.store = CountingStore(store)
        self.payloads = Payloads(payload)
        wishes = Wishes(LOG, "follower", credit, payload, outcomes=True)
        self.feed = LogFeed(self.store, P, wishes, Access())
        self.follower = LogFollower(self.store, P, feed=self.feed, payloads=self.payloads)

    def units(self) -> list[int]:
        """Returns the units that are not resolved."""
        return sorted(self.follower.backlog.unresolved())

    async def has(self, shared: SharedLog, *, poll: bool = True) -> None:
        """Waits until everything that the owner has made durable is folded."""
        owner = shared.owner
        assert owner is not None
        await until(lambda: self._polled(poll) >= owner.durable_id)

    async def fed(self) -> None:
        """Waits until the feed has begun, and everything before it is folded."""
        await until(lambda: self._polled() >= 0 and self.feed.is_following)
        self._polled()

    def _polled(self, poll: bool = True) -> int:
        if poll:
            assert self.follower.poll(strong=True)
        return self.follower.next_id

    def is_the_fold(self) -> bool:
        """Returns whether the state is what a fold of the stored log gives."""
        stored = load_state(self.store, P)
        mine = self.follower._state  # noqa: SLF001 - what is compared
        return is_alike(mine, stored)


@contextlib.asynccontextmanager
async def following(store: MemoryStore, **more: Any) -> AsyncIterator[Followed]:
    """Follows a log while the context is entered."""
    followed = Followed(store, **more)
    followed.follower.start()
    running = asyncio.create_task(followed.feed.run())
    try:
        yield followed
    finally:
        followed.feed.close()
        await running


async def append(log: SharedLog, number: int, shard: str = "s0", size: int = 1) -> None:
    """Appends one whole unit."""
    at = Position(number)
    await append_next(log, shard, at, at, [fragment(f"{shard} {number}", range(size), count=size)])


@contextlib.asynccontextmanager
async def behind_a_proxy(all_: Members, worker: str) -> AsyncIterator[tuple[SharedLog, Proxy]]:
    """Joins a member that others reach through a proxy."""
    listen = Address("127.0.0.1", free_port())
    async with Proxy(listen).running() as proxy:
        yield await all_.join(worker, access=Access(listen=listen, advertise=proxy.address)), proxy
