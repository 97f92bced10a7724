"""One client's feed: credit, the last word, and a mount that takes the place of what is left."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from kainite.waltz.feed import PORTION, Feed
from kainite.waltz.wire.messages import FeedData, FeedSuspended
from support.application_world import LIMIT_S, World, raw_client, world
from support.served_peers import REQ


class Told:
    """A client that keeps what it hears."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[Any] = asyncio.Queue()

    async def send(self, *messages: Any) -> None:
        for message in messages:
            self.said.put_nowait(message)

    async def ids(self) -> list[int]:
        """Returns what is fed up to the last word."""
        found: list[int] = []
        async with asyncio.timeout(LIMIT_S):
            while isinstance(message := await self.said.get(), FeedData):
                found.append(message.transaction_id)
        assert message == FeedSuspended(REQ)
        return found


@contextlib.asynccontextmanager
async def fed(found: World) -> AsyncIterator[tuple[Feed, Told]]:
    told: Any = Told()
    feed = Feed(told, found.owned)
    running = asyncio.create_task(feed.run())
    try:
        yield feed, told
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_credit_is_fed_in_order_and_then_nothing_more() -> None:
    async with world() as found, raw_client(found) as raw, fed(found) as (feed, told):
        for _ in range(5):
            raw.append(-1)
        await raw.flush()
        feed.give(-1, 2, FeedSuspended(REQ))
        assert await told.ids() == [0, 1, 2]
        assert told.said.empty()
        feed.give(1, 4, FeedSuspended(REQ))
        assert await told.ids() == [2, 3, 4], "another mount is fed behind the mark that it says"


async def test_a_portion_waits_for_transactions_that_are_not_there_yet() -> None:
    async with world() as found, raw_client(found) as raw, fed(found) as (feed, told):
        feed.give_portion(-1, FeedSuspended(REQ))
        for _ in range(PORTION + 1):
            raw.append(-1)
        await raw.flush()
        assert await told.ids() == list(range(PORTION))
