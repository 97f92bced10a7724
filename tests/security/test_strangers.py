"""Who does not know the key of the log's port: appends nothing, reads nothing, and is no owner for anybody."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from kainite.base.errors import LogRequestError
from kainite.base.position import Position
from kainite.log.client import ReadingReport
from kainite.log.contract import LogStore
from kainite.owner.mount import mount
from kainite.peers.access import LOG_USER
from kainite.peers.address import OwnerAddress, of_listener, reached_by
from kainite.peers.connection.frames import HEADER_SIZE, PEERS_HELLO, PROOF, encode_frame
from kainite.peers.connection.hello import Hello, encode_hello
from kainite.peers.connection.introduction import Introduction, introducing, named, new_nonce
from kainite.peers.messages import (
    Follow,
    Join,
    Message,
    ReadingAnswer,
    ReadingRequest,
    RowRequest,
    SentPosition,
    ShardAppend,
)
from kainite.store.memory import MemoryStore
from support.attackers import attacker
from support.log_builders import fragment
from support.log_members import LIMIT, Members, P, members, units_of
from support.next_append import append_next
from support.peer_doubles import HeardPeer
from support.waiting import until

LOG = f"t/{P}"
FAR = SentPosition.of(Position(10**50))
JOIN = Join(1, 0, LOG, "s", "evil", "evil")
APPEND = ShardAppend(1, 1, "s0", None, FAR, FAR, memoryview(b"\x93\x90\x90\x80"), memoryview(b""))
FOLLOW = Follow(1, 0, LOG, "evil", 0, 1 << 20, 1 << 20, False)
WHO = RowRequest(1, 0, LOG, "orders", {"id": "1"})


def owner_of(store: LogStore) -> OwnerAddress:
    head = store.read_head(P)
    assert head is not None
    address = reached_by(head.address, head.token)
    assert address is not None
    return address


@contextlib.asynccontextmanager
async def log_with_an_owner() -> AsyncIterator[tuple[Members, OwnerAddress]]:
    async with members() as all_:
        await all_.join("a")
        yield all_, owner_of(all_.store)


@pytest.mark.parametrize("user", ["", LOG_USER, "ann", "@"])
@pytest.mark.parametrize("messages", [(JOIN, APPEND), (FOLLOW,), (WHO,)], ids=["append", "follow", "ask"])
async def test_who_has_not_read_head_discards_no_shard_and_reads_nothing(
    user: str, messages: tuple[Message, ...]
) -> None:
    async with log_with_an_owner() as (all_, address):
        b = await all_.join("b")
        async with attacker(address) as evil:
            theirs = await evil.owners_hello()
            hello, _ = introducing(Introduction("evil", user, "a guess"), new_nonce(), Hello((1,), None), theirs)
            evil.say(hello, *messages)
            assert await evil.heard() == []
        await append_next(b, "s0", Position(1), Position(5), [fragment("T", [1], count=1)])
        assert await b.position("s0") == Position(5)
        assert units_of(all_.store) == ["T"]


async def test_what_was_heard_on_the_way_lets_nobody_in() -> None:
    async with log_with_an_owner() as (_, address):
        async with attacker(address) as member:
            theirs = await member.owners_hello()
            told, _ = introducing(Introduction("b", LOG_USER, address.token), new_nonce(), Hello((1,), None), theirs)
            member.say(told)
            assert (await member.frame())[0] == PROOF
        async with attacker(address) as evil:
            await evil.owners_hello()
            evil.say(told, FOLLOW)
            assert await evil.heard() == []


async def test_the_token_of_an_earlier_mount_is_worth_nothing() -> None:
    async with log_with_an_owner() as (all_, before):
        await all_.leave("a")
        await all_.join("a")
        now = owner_of(all_.store)
        assert now.token != before.token
        for token, let_in in ((before.token, False), (now.token, True)):
            async with attacker(now) as peer:
                assert await peer.prove(Introduction("b", LOG_USER, token)) is let_in


async def test_the_token_stands_in_head_alone() -> None:
    async with log_with_an_owner() as (all_, address):
        head = all_.store.read_head(P)
        assert head is not None
        assert address.token == head.token
        assert len(address.token) >= 32
        assert address.token not in f"{head!r} {address!r} {address.as_text()}"


class Impostor:
    """Listens where HEAD says that the owner does, and acknowledges whatever it is told."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(encode_hello(PEERS_HELLO, Hello((1,), named("Kainite log", new_nonce()))))
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readexactly(HEADER_SIZE)
            self.heard.append(await reader.readexactly(int.from_bytes(head[3:])))
            writer.write(encode_frame(PROOF, 0, bytes(32)))
            self.heard.append(await reader.read())
        writer.close()


async def test_who_takes_the_port_of_an_owner_that_died_is_told_nothing() -> None:
    impostor, store = Impostor(), MemoryStore()
    async with await asyncio.start_server(impostor, "127.0.0.1", 0) as listening, members(store) as all_:
        address = of_listener("127.0.0.1", listening.sockets[0].getsockname()[1])
        mount(store, P, "dead", 1000.0, address=address.as_text(), token="the token in HEAD")
        b = await all_.join("b", reached=False)
        appending = asyncio.create_task(b.append("s0", Position(1), Position(1), [fragment("T", [1], count=1)]))
        await until(lambda: len(impostor.heard) >= 4)
        assert not appending.done()
        assert not b.is_reached
        assert b"the token in HEAD" not in b"".join(impostor.heard)
        assert [rest for rest in impostor.heard[1::2] if rest] == []  # no message behind the Hello
        appending.cancel()


async def test_a_member_appends_only_for_shards_whose_leases_it_holds() -> None:
    async with members() as all_:
        all_.holders.others["s0"] = "c"
        await all_.join("a")
        b, c = await all_.join("b"), await all_.join("c")
        with pytest.raises(LogRequestError, match="b does not hold its lease"):
            await b.append("s0", Position(10**50), Position(10**50), [])
        await c.append("s0", Position(1), Position(5), [fragment("T", [1], count=1)])
        assert await b.position("s0") == Position(5)
        assert units_of(all_.store) == ["T"]


async def test_a_member_tells_nothing_of_the_shards_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async with members() as all_:
        all_.holders.others["s0"] = "c"
        log, peer = await all_.join("a"), HeardPeer()
        assert log.owner is not None
        told: list[ReadingReport] = []
        monkeypatch.setattr(log.owner, "report", told.append)
        rest = await log.reception.take(peer, Join(1, 0, LOG, "s", "b", "b"))
        assert rest is None
        while not isinstance(asked := await asyncio.wait_for(peer.said.get(), LIMIT), ReadingRequest):
            pass
        ages, times = {"s0": 0.0, "s1": 0.0}, {"s0": 10**15, "s1": 1}
        await log.reception.take(peer, ReadingAnswer(1, asked.number, frozenset(ages), ages, ages, times))
        (report,) = told
        assert [set(fact) for fact in (report.read, report.tips, report.arrived)] == [{"s1"}] * 3
        log.reception.left(peer)


@pytest.mark.parametrize("after", [None, Position(4), Position(6), Position(10**50)])
async def test_a_jump_is_refused_whoever_makes_it(after: Position | None) -> None:
    async with members() as all_:
        owner = await all_.join("a")
        b = await all_.join("b")
        await b.append("s0", Position(1), Position(5), [fragment("T-1", [1], count=1)])
        for log in (b, owner):
            with pytest.raises(LogRequestError, match=r"follow .*, and the log has records up to 5; read on"):
                await log.append("s0", Position(10**51), Position(10**51), [], after)
        await asyncio.wait_for(
            b.append("s0", Position(6), Position(9), [fragment("T-2", [1], count=1)], Position(5)), LIMIT
        )
        assert units_of(all_.store) == ["T-1", "T-2"]
