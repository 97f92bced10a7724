"""Accepted connections on real sockets: peers that are slow, silent, greedy or wrong disturb nobody else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

import pytest

from kainite.base.errors import LogProtocolError
from kainite.log.format.entry import ReqId
from kainite.peers import accepted
from kainite.peers.client import linked
from kainite.peers.connection.core import Limits
from kainite.peers.connection.frames import PEERS_HELLO, WALTZ_HELLO
from kainite.peers.connection.hello import Hello, decode_hello, encode_hello
from kainite.peers.server import serving
from kainite.peers.service import Peer
from kainite.waltz.wire.layouts import WaltzMessage
from kainite.waltz.wire.messages import (
    FlushRequest,
    FlushResponse,
    HighWaterMarkRequest,
    TransactionDataRequest,
    TransactionDataResponse,
)
from kainite.waltz.wire.versions import WALTZ
from support.application_world import waltz_frame
from support.doors import ANN, ANNS, EVERYBODY
from support.served_peers import (
    HERE,
    KNOWN,
    REQ,
    Answers,
    answers_well,
    answers_with_credit,
    client_of,
    say_alive,
)
from support.waiting import until


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        encode_hello(WALTZ_HELLO, Hello((9,), None)),
        b"H\0\0\x7f\xff\xff\xff",
    ],
)
async def test_a_peer_that_sends_garbage_is_cut_and_disturbs_nobody(garbage: bytes) -> None:
    async with serving(Answers(), HERE, door=EVERYBODY) as server, client_of(server) as client:
        client.writer.write(garbage)
        assert await client.is_cut()
        await answers_well(server)


async def test_a_peer_of_the_other_protocol_is_told_where_to_connect() -> None:
    async with serving(Answers(), HERE, door=EVERYBODY) as server, client_of(server) as client:
        client.writer.write(encode_hello(PEERS_HELLO, Hello((1,), "a daemon")))
        assert decode_hello(await client.frame()).versions == (0, 1, 2, 3, 4)
        refusal = decode_hello(await client.frame())
        assert refusal.versions == ()
        assert "daemons and the apply job connect to the port of logListen" in (refusal.message or "")
        assert await client.is_cut()
        await answers_well(server)


async def test_a_peer_whose_request_is_refused_is_cut() -> None:
    async with serving(Answers(), HERE, door=EVERYBODY) as server, client_of(server) as client:
        await client.greet()
        client.ask(HighWaterMarkRequest(REQ))
        assert await client.is_cut()
        await answers_well(server)


@pytest.mark.parametrize(
    "sent",
    [b"", b"H", KNOWN, KNOWN + b"L\0"],
)
async def test_a_peer_that_is_silent_or_stops_midway_is_cut(sent: bytes) -> None:
    limits = Limits(greeting=0.2, silent=0.2, frame=0.2)
    async with serving(Answers(), HERE, door=EVERYBODY, limits=limits) as server, client_of(server) as client:
        client.writer.write(sent)
        assert await client.is_cut()


async def test_a_peer_that_says_it_is_alive_is_not_silent() -> None:
    async with (
        serving(Answers(), HERE, door=EVERYBODY, limits=Limits(silent=0.5)) as server,
        client_of(server) as client,
        contextlib.AsyncExitStack() as stack,
    ):
        await client.greet()
        alive = asyncio.create_task(say_alive(client))
        silent = [await stack.enter_async_context(client_of(server)) for _ in range(2)]
        for other in silent:  # each is cut when it was silent for the limit
            await other.greet()
            assert await other.is_cut()
        alive.cancel()
        client.ask(FlushRequest(REQ))
        assert await client.message() == FlushResponse(REQ, 7)


async def test_a_peer_that_takes_nothing_is_cut_and_disturbs_nobody() -> None:
    service = Answers()
    async with serving(service, HERE, door=EVERYBODY, limits=Limits(slow=0.3)) as server, client_of(server) as client:
        await client.greet()
        for _ in range(64):
            client.ask(TransactionDataRequest(REQ, 1 << 20))
        await answers_well(server)
        await until(lambda: len(service.peers) == 2)


async def test_no_more_is_read_from_a_peer_than_its_credit_and_all_is_answered_in_the_end() -> None:
    service = Answers()
    service.go.clear()
    async with serving(service, HERE, door=EVERYBODY, limits=Limits(messages=5)) as server, client_of(server) as client:
        await client.greet()
        for sequence in range(20):
            client.ask(FlushRequest(ReqId(1, 2, 3, sequence)))
        await until(lambda: len(service.taken) == 5)
        await answers_with_credit(server, service)
        assert len([message for message in service.taken if message.req_id.client == 1]) == 5
        service.go.set()
        answered = [await client.message() for _ in range(20)]
        assert sorted(message.req_id.sequence for message in answered) == list(range(20))


async def test_a_peer_that_floods_while_a_message_is_taken_is_not_read() -> None:
    class Taking(Answers):
        async def take(self, peer: Peer[WaltzMessage], message: WaltzMessage) -> Coroutine[Any, Any, None] | None:
            self.taken.append(message)
            await self.go.wait()
            return None

    service = Taking()
    service.go.clear()
    limits = Limits(bytes=1 << 30)
    async with serving(service, HERE, door=EVERYBODY, limits=limits) as server, client_of(server) as client:
        await client.greet()
        for _ in range(32):
            client.ask(TransactionDataResponse(REQ, 1, bytes(1 << 20)))
        await until(lambda: len(service.taken) == 1)
        for _ in range(100):
            await asyncio.sleep(0)
        (peer,) = server._peers  # noqa: SLF001 - what it holds
        assert peer._connection.buffered <= 2 * accepted.READ_AHEAD + (1 << 20)  # noqa: SLF001
        service.go.set()
        await until(lambda: len(service.taken) == 32)


async def test_credit_in_bytes_lets_one_large_message_pass_alone() -> None:
    service = Answers()
    async with serving(service, HERE, door=EVERYBODY, limits=Limits(bytes=10)) as server:
        await answers_well(server)


async def test_proofs_are_judged_before_anything_else() -> None:
    service = Answers()
    async with serving(service, HERE, door=ANNS) as server:
        for message in ("test", "test\0ann\0nonce\0", "test\0ann\0nonce\0" + "0" * 64):
            async with client_of(server) as client:
                client.writer.write(encode_hello(WALTZ_HELLO, Hello((4,), message)) + waltz_frame(4, FlushRequest(REQ)))
                assert await client.is_cut()
        assert service.taken == []
        async with linked(WALTZ, server.address, ANN) as link:
            link.send(FlushRequest(REQ))
            assert await link.next() == FlushResponse(REQ, 7)


async def test_a_peer_that_waits_for_the_owners_hello_is_greeted_all_the_same() -> None:
    async with serving(Answers(), HERE, door=EVERYBODY) as server, client_of(server) as client:
        assert decode_hello(await client.frame()).versions == (0, 1, 2, 3, 4)
        client.writer.write(encode_hello(WALTZ_HELLO, Hello((4, 9), "late")))
        client.ask(FlushRequest(REQ))
        assert await client.message() == FlushResponse(REQ, 7)


class Beside(Answers):
    """A service that does something beside each peer's messages."""

    def __init__(self) -> None:
        super().__init__()
        self.end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.works = 0

    async def take(self, peer: Peer[WaltzMessage], message: WaltzMessage) -> Coroutine[Any, Any, None] | None:
        peer.beside(self._work())
        return await super().take(peer, message)

    async def _work(self) -> None:
        self.works += 1
        try:
            await asyncio.shield(self.end)
        finally:
            self.works -= 1


@pytest.mark.parametrize("error", [None, LogProtocolError("it breaks")])
async def test_the_end_of_what_is_done_beside_messages_is_the_connections(error: Exception | None) -> None:
    service = Beside()
    async with serving(service, HERE, door=EVERYBODY) as server, client_of(server) as client:
        await client.greet()
        client.ask(FlushRequest(REQ))
        assert await client.message() == FlushResponse(REQ, 7)
        if error is None:
            service.end.set_result(None)
        else:
            service.end.set_exception(error)
        assert await client.is_cut()


async def test_what_is_done_beside_messages_ends_with_the_peer_and_with_a_stop() -> None:
    service = Beside()
    async with contextlib.AsyncExitStack() as stack:
        async with serving(service, HERE, door=EVERYBODY) as server:
            client = await stack.enter_async_context(client_of(server))
            async with client_of(server) as other:
                for one in (client, other):
                    await one.greet()
                    one.ask(FlushRequest(REQ))
                    assert await one.message() == FlushResponse(REQ, 7)
                assert service.works == 2
            await until(lambda: service.works == 1)
        assert await client.is_cut()
        assert service.works == 0
    service.end.cancel()
