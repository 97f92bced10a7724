"""The connecting side's shell on real sockets: what the caller is told of each way in which a connection ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from kainite.base.address import Address
from kainite.base.errors import LogProtocolError, LogRequestError, LogUnavailableError
from kainite.log.format.entry import ReqId
from kainite.peers.client import ClientLink, Silence, linked
from kainite.peers.connection.core import Limits
from kainite.peers.connection.frames import HEADER_SIZE, MESSAGE, PEERS_HELLO, PROOF, encode_frame
from kainite.peers.connection.hello import Hello, decode_hello, encode_hello
from kainite.peers.messages import PEERS, Appended, FeedUpTo, Message
from kainite.peers.server import serving
from kainite.waltz.wire.layouts import WaltzMessage
from kainite.waltz.wire.messages import (
    FlushRequest,
    FlushResponse,
    HighWaterMarkRequest,
    TransactionDataRequest,
    TransactionDataResponse,
)
from kainite.waltz.wire.versions import WALTZ
from support.doors import ANN, ANNS
from support.ports import free_port
from support.served_peers import HERE, REQ, Answers

ME = ANN
OURS = Hello((1,), "owner")
HELLO = encode_hello(PEERS_HELLO, OURS)
SAID = encode_frame(MESSAGE, 1, PEERS.encode(1, Appended(7, 1)))


@contextlib.asynccontextmanager
async def saying(data: bytes, *, ends: bool = False) -> AsyncIterator[Address]:
    """Listens, and says so many bytes to whoever connects; behind a Hello it proves itself."""
    over = asyncio.Event()
    ended: list[asyncio.Task[None] | None] = []

    async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.current_task())
        if data.startswith(HELLO):
            writer.write(HELLO)
            header = await reader.readexactly(HEADER_SIZE)
            said = decode_hello(await reader.readexactly(int.from_bytes(header[3:])))
            writer.write(encode_frame(PROOF, 0, ANNS.judge(OURS, said).proof or b""))
        writer.write(data.removeprefix(HELLO))
        if not ends:
            await over.wait()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async with await asyncio.start_server(say, "127.0.0.1", 0) as server:
        try:
            yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
        finally:
            over.set()
            await asyncio.gather(*(task for task in ended if task is not None))


async def test_messages_go_both_ways() -> None:
    async with serving(Answers(), HERE, door=ANNS) as server, linked(WALTZ, server.address, ME) as link:
        link.send(FlushRequest(REQ), TransactionDataRequest(REQ, 3))
        said = [await link.next() for _ in range(2)]
        assert sorted(map(repr, said)) == sorted(
            map(repr, (FlushResponse(REQ, 7), TransactionDataResponse(REQ, 3, bytes(3))))
        )
        await link.drained()


async def test_nobody_who_listens_is_told_from_everything_else() -> None:
    with pytest.raises(ConnectionRefusedError):
        async with linked(PEERS, Address("127.0.0.1", free_port()), ME):
            pass


async def heard(data: bytes, *, ends: bool, limits: Limits | None = None) -> Message:
    async with saying(data, ends=ends) as address, linked(PEERS, address, ME, limits=limits) as link:
        return await link.next()


@pytest.mark.parametrize(
    ("data", "ends", "error", "said"),
    [
        (b"", True, LogUnavailableError, "closed the connection|is gone"),
        (HELLO, True, LogUnavailableError, "closed the connection|is gone"),
        (b"", False, LogUnavailableError, "no Hello within"),
        (HELLO, False, LogUnavailableError, "silent for"),
        (HELLO + b"L\0\1\0", False, LogUnavailableError, "takes too long"),
        (b"HTTP/1.1 400", False, LogProtocolError, "byte 72|another port's"),
        (HELLO + b"L\0\1\0\0\0\1\xc0", False, LogProtocolError, "cannot be read"),
        (HELLO + SAID, False, LogProtocolError, "before it was asked"),
        (encode_hello(PEERS_HELLO, Hello((9,), "")), False, LogProtocolError, "upgrade the older one"),
    ],
)
async def test_each_end_is_told(data: bytes, ends: bool, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        await heard(data, ends=ends, limits=Limits(greeting=0.1, silent=0.1, frame=0.2))


async def test_a_peer_that_is_silent_is_asked_and_left_when_it_says_nothing_to_that() -> None:
    asked: list[WaltzMessage] = []

    class Mute(Answers):
        async def take(self, peer, message):  # type: ignore[no-untyped-def]
            asked.append(message)

    question: Silence[WaltzMessage] = Silence(HighWaterMarkRequest(ReqId(1)), 0.05)
    async with serving(Mute(), HERE, door=ANNS) as server:
        with pytest.raises(LogUnavailableError, match=r"silent for 0\.2 s"):
            async with linked(WALTZ, server.address, ME, limits=Limits(silent=0.2), silence=question) as link:
                await link.next()
    assert len(asked) >= 2
    assert set(asked) == {HighWaterMarkRequest(ReqId(1))}


async def test_a_message_that_no_peer_takes_is_refused_and_the_link_goes_on() -> None:
    small = Limits(body=100)
    async with serving(Answers(), HERE, door=ANNS) as server, linked(WALTZ, server.address, ME, limits=small) as link:
        with pytest.raises(LogRequestError, match="split it"):
            link.send(TransactionDataResponse(REQ, 1, bytes(200)))
        link.send(FlushRequest(REQ))
        assert await link.next() == FlushResponse(REQ, 7)


async def test_who_closes_its_own_link_hears_that_it_is_closed() -> None:
    async def closing(link: ClientLink[Message]) -> None:
        link.say_alive()
        link.send(Appended(1, 1), FeedUpTo(1, 0, 1))
        link.close()
        await link.next()

    async with saying(HELLO) as address, linked(PEERS, address, ME) as link:
        with pytest.raises(LogUnavailableError):
            await closing(link)
