"""Memory: what peers have begun to say and not finished takes no more of it than one budget, and goes back."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine
from typing import Any

import pytest

from kainite.peers import accepted
from kainite.peers.access import LOG_USER
from kainite.peers.address import OwnerAddress, reached_by
from kainite.peers.byte_budget import ByteBudget
from kainite.peers.connection.core import Limits
from kainite.peers.connection.introduction import Doorkeeper, Introduction, Key
from kainite.peers.messages import MAX_FRAME, PEERS, Follow, Join, Joined, Message, RowRequest
from kainite.peers.rights import OF_THE_LOG
from kainite.peers.server import LogServer, serving
from kainite.peers.service import Peer
from support.attackers import Attacker, attacker
from support.log_members import P, members
from support.served_peers import HERE
from support.waiting import until

LOG = f"t/{P}"
ANN = Introduction("test", "ann", "one")
DOOR = Doorkeeper({"ann": Key("one", OF_THE_LOG)}.get)
FOLLOW = Follow(1, 0, LOG, "f", 0, 1 << 20, 1 << 20, False)
PEERS_AT_ONCE = 8
PIECE = 100 * 1024


class Sink:
    """Takes every message, and allows long ones."""

    codec = PEERS

    def __init__(self) -> None:
        self.sizes: list[int] = []

    async def take(self, peer: Peer[Message], message: Message) -> Coroutine[Any, Any, None] | None:
        peer.allow_long()
        self.sizes.append(len(PEERS.encode(1, message)))
        return None

    def left(self, peer: Peer[Message]) -> None:
        pass


def buffered(server: LogServer[Message]) -> int:
    """Returns the bytes that the server holds of all its peers."""
    return sum(peer._connection.buffered for peer in server._peers)  # noqa: SLF001 - what they hold


def long_message(size: int) -> bytes:
    return PEERS.encode(1, RowRequest(1, 1, LOG, "x" * 1_000, {f"{n}": "y" * 10_000 for n in range(size // 10_000)}))


async def test_a_stranger_may_announce_nothing_long() -> None:
    async with serving(Sink(), HERE, door=DOOR) as server, attacker(server.address) as evil:
        await evil.owners_hello()
        evil.begin_frame(MAX_FRAME, bytes(PIECE))
        assert await evil.heard() == []
        assert buffered(server) == 0


@pytest.mark.parametrize("first", [(), (FOLLOW,)], ids=["before it has joined", "as a follower"])
async def test_who_has_not_joined_may_announce_nothing_long(first: tuple[Message, ...]) -> None:
    async with members() as all_:
        await all_.join("a")
        async with attacker(owner_of(all_.store)) as evil:
            assert await evil.prove(Introduction("f", LOG_USER, owner_of(all_.store).token))
            evil.ask(*first)
            evil.begin_frame(MAX_FRAME, bytes(PIECE))
            heard = await evil.heard()
            assert Joined not in map(type, heard)


def owner_of(store: Any) -> OwnerAddress:
    head = store.read_head(P)
    assert head is not None
    address = reached_by(head.address, head.token)
    assert address is not None
    return address


async def joined(stack: contextlib.AsyncExitStack, server: LogServer[Message]) -> Attacker:
    peer = await stack.enter_async_context(attacker(server.address))
    assert await peer.prove(ANN)
    peer.ask(Join(1, 0, LOG, "s", "b", "b"))
    return peer


async def test_unfinished_messages_of_many_peers_take_one_budget_and_the_others_go_on() -> None:
    service, budget = Sink(), ByteBudget(10 * PIECE)
    limits = Limits(body=MAX_FRAME, frame=1.0, rate=1 << 30)
    async with (
        serving(service, HERE, door=DOOR, limits=limits, budget=budget) as server,
        contextlib.AsyncExitStack() as stack,
    ):
        evil = [await joined(stack, server) for _ in range(PEERS_AT_ONCE)]
        honest = await joined(stack, server)
        await until(lambda: len(service.sizes) == PEERS_AT_ONCE + 1)
        for peer in evil:  # each announces most of the budget, and would send far more than its share
            peer.begin_frame(9 * PIECE, bytes(8 * PIECE))
        await until(lambda: budget.taken == 9 * PIECE)
        assert buffered(server) <= 9 * PIECE + PEERS_AT_ONCE * 2 * accepted.READ_AHEAD
        honest.ask(RowRequest(1, 1, LOG, "t", {"id": "1"}))
        await until(lambda: len(service.sizes) == PEERS_AT_ONCE + 2)  # short messages wait for nobody
        body = long_message(2 * PIECE)
        honest.begin_frame(len(body), body)
        for peer in evil:  # each has its turn, and is cut when its message is not whole in time
            assert await peer.heard() == []
        await until(lambda: service.sizes[-1] == len(body))
        await until(lambda: budget.taken == 0)
        assert buffered(server) == 0


async def test_what_a_peer_that_leaves_has_begun_goes_back() -> None:
    service, budget = Sink(), ByteBudget(10 * PIECE)
    limits = Limits(body=MAX_FRAME)
    async with serving(service, HERE, door=DOOR, limits=limits, budget=budget) as server:
        async with contextlib.AsyncExitStack() as stack:
            for peer in [await joined(stack, server) for _ in range(PEERS_AT_ONCE)]:
                peer.begin_frame(9 * PIECE, bytes(PIECE))
            await until(lambda: budget.taken == 9 * PIECE)
        await until(lambda: budget.taken == 0)
        async with contextlib.AsyncExitStack() as stack:
            honest = await joined(stack, server)
            body = long_message(5 * PIECE)
            honest.begin_frame(len(body), body)
            await until(lambda: len(body) in service.sizes)


async def test_a_large_message_leaves_no_memory_behind_at_a_peer_that_stays() -> None:
    service = Sink()
    async with (
        serving(service, HERE, door=DOOR, limits=Limits(body=MAX_FRAME)) as server,
        contextlib.AsyncExitStack() as stack,
    ):
        honest = await joined(stack, server)
        body = long_message(20 * PIECE)
        honest.begin_frame(len(body), body)
        await until(lambda: len(body) in service.sizes)
        (peer,) = server._peers  # noqa: SLF001
        assert len(peer._connection._decoder._buffer) == 0  # noqa: SLF001 - its memory
