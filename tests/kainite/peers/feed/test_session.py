"""A follower at the log's owner: what is said to it as the session begins."""

from __future__ import annotations

import asyncio

from kainite.peers.feed.session import FeedSession
from kainite.peers.messages import FeedUpTo, Follow
from support.followed_log import LOG, append
from support.log_members import LIMIT, members
from support.peer_doubles import HeardPeer


async def test_a_batch_that_becomes_durable_before_the_first_step_is_said_to_be_there() -> None:
    # Nobody would read it else, until another one becomes durable.
    async with members() as all_:
        log = await all_.join("a")
        await append(log, 1)
        owner = log.owner
        assert owner is not None
        peer = HeardPeer()
        wanted = Follow(0, 0, LOG, "f", owner.durable_id, 1 << 20, 0, outcomes=False)
        session = FeedSession(owner, peer, wanted, lambda: None)
        await append(log, 2)
        sending = asyncio.create_task(session.send())
        try:
            said = await asyncio.wait_for(peer.said.get(), LIMIT)
            assert said == FeedUpTo(owner.generation, 0, owner.durable_id)
            assert session.lag > 0
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
