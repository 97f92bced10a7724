"""What a peer's first message asks for decides what answers it."""

from __future__ import annotations

import asyncio

import pytest

from kainite.base.errors import LogProtocolError
from kainite.peers.messages import (
    Appended,
    Elsewhere,
    Follow,
    Join,
    Joined,
    Message,
    ReadingRequest,
    RequestRefused,
    RowRequest,
)
from kainite.peers.sharing.shared_log import SharedLog
from kainite.settings import UowSettings
from kainite.store.memory import MemoryStore
from support.followed_log import LOG
from support.log_members import LIMIT, SETTINGS, members
from support.peer_doubles import HeardPeer
from support.shard_holders import ShardHolders

JOIN = Join(1, 0, LOG, "s", "b", "process b")
FOLLOW = Follow(1, 0, LOG, "f", 0, 1 << 20, 0, outcomes=False)
WHO = RowRequest(0, 0, LOG, "t", {"id": "1"})


async def said(log: SharedLog, peer: HeardPeer, message: Message) -> Message:
    """Has a message taken; returns the first thing that the peer hears."""
    rest = await log.reception.take(peer, message)
    if rest is not None:
        await rest
    return await asyncio.wait_for(peer.said.get(), LIMIT)


@pytest.mark.parametrize("message", [JOIN, FOLLOW, WHO])
async def test_where_the_owner_is_not_here_everybody_is_sent_elsewhere(message: Message) -> None:
    log, peer = SharedLog(MemoryStore(), SETTINGS, UowSettings(), "s", ShardHolders()), HeardPeer()
    assert await said(log, peer, message) == Elsewhere(0, 0, "")
    assert peer.ended == [""]


async def test_whoever_begins_with_something_else_breaks_the_protocol() -> None:
    log = SharedLog(MemoryStore(), SETTINGS, UowSettings(), "s", ShardHolders())
    with pytest.raises(LogProtocolError, match="began with Appended"):
        await log.reception.take(HeardPeer(), Appended(1, 1))


async def test_a_member_is_welcomed_asked_and_forgotten() -> None:
    async with members() as all_:
        log, peer = await all_.join("a"), HeardPeer()
        assert isinstance(await said(log, peer, JOIN), Joined)
        assert isinstance(await asyncio.wait_for(peer.said.get(), LIMIT), ReadingRequest)
        assert log.reception.members == {"b": "process b"}
        with pytest.raises(LogProtocolError, match="a member sent Join"):
            await log.reception.take(peer, JOIN)
        log.reception.left(peer)
        assert log.reception.members == {}


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (Join(1, 0, LOG, "s", "a", "process b"), "another daemon runs under the worker id a"),
        (Join(1, 0, LOG, "other", "b", "process b"), "collects stream s"),
        (Join(1, 0, "another/0", "s", "b", "process b"), "collects stream s"),
        (Follow(1, 0, "another/0", "f", 0, 1, 0, outcomes=False), "is here, not another/0"),
    ],
)
async def test_who_is_refused_is_told_why(message: Message, cause: str) -> None:
    async with members() as all_:
        log, peer = await all_.join("a"), HeardPeer()
        answer = await said(log, peer, message)
        assert isinstance(answer, RequestRefused)
        assert cause in answer.cause
        assert peer.ended == [""]


async def test_a_member_and_a_follower_are_told_when_the_owner_ends() -> None:
    async with members() as all_:
        log = await all_.join("a")
        peers = HeardPeer(), HeardPeer()
        await said(log, peers[0], JOIN)
        await said(log, peers[1], FOLLOW)
        assert log.feed_lags() == (("f", 0),)
        await all_.kill("a")
        for peer in peers:
            while not isinstance(await asyncio.wait_for(peer.said.get(), LIMIT), Elsewhere):
                pass
