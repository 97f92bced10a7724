"""A service of Waltz's messages on a real socket, and clients of it on the level of frames."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from kainite.base.address import Address
from kainite.base.errors import LogProtocolError
from kainite.log.format.entry import ReqId
from kainite.peers.connection.frames import HEADER_SIZE, WALTZ_HELLO, keep_alive
from kainite.peers.connection.hello import Hello, decode_hello, encode_hello
from kainite.peers.server import LogServer
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

HERE = Address("127.0.0.1", 0)
REQ = ReqId(1, 2, 3, 4)
LIMIT_S = 30.0
KNOWN = encode_hello(WALTZ_HELLO, Hello((4,), "x"))
UNKNOWN = encode_hello(WALTZ_HELLO, Hello((9,), None))


class Answers:
    """A service that answers a flush when it is told to, and a data request with so many bytes."""

    codec = WALTZ

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.go.set()
        self.taken: list[WaltzMessage] = []
        self.peers: list[Peer[WaltzMessage]] = []

    async def take(self, peer: Peer[WaltzMessage], message: WaltzMessage) -> Coroutine[Any, Any, None] | None:
        self.taken.append(message)
        match message:
            case FlushRequest(req_id):
                return self._flush(peer, req_id)
            case TransactionDataRequest(req_id, size):
                return peer.send(TransactionDataResponse(req_id, size, bytes(size)))
            case HighWaterMarkRequest():
                raise LogProtocolError("no marks here")
        return None

    async def _flush(self, peer: Peer[WaltzMessage], req_id: ReqId) -> None:
        await self.go.wait()
        await peer.send(FlushResponse(req_id, 7))

    def left(self, peer: Peer[WaltzMessage]) -> None:
        self.peers.append(peer)


class Client:
    """A client of the test's own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def frame(self) -> bytes:
        async with asyncio.timeout(LIMIT_S):
            header = await self.reader.readexactly(HEADER_SIZE)
            return await self.reader.readexactly(int.from_bytes(header[3:]))

    async def message(self) -> WaltzMessage:
        return WALTZ.decode(4, await self.frame())

    async def greet(self, message: str = "test") -> Hello:
        self.writer.write(encode_hello(WALTZ_HELLO, Hello((0, 1, 2, 3, 4), message)))
        return decode_hello(await self.frame())

    def ask(self, message: WaltzMessage) -> None:
        self.writer.write(waltz_frame(4, message))

    async def is_cut(self) -> bool:
        async with asyncio.timeout(LIMIT_S):
            with contextlib.suppress(ConnectionError):
                while await self.reader.read(1 << 16):
                    pass
        return True


@contextlib.asynccontextmanager
async def client_of(server: LogServer[WaltzMessage], tls: ssl.SSLContext | None = None) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.address.port, ssl=tls)
    try:
        yield Client(reader, writer)
    finally:
        writer.transport.abort()


async def say_alive(client: Client) -> None:
    while True:
        client.writer.write(keep_alive(4))
        await asyncio.sleep(0.05)


async def answers_well(
    server: LogServer[WaltzMessage], tls: ssl.SSLContext | None = None, message: str = "test"
) -> None:
    async with client_of(server, tls) as client:
        assert (await client.greet(message)).versions == (0, 1, 2, 3, 4)
        client.ask(FlushRequest(REQ))
        assert await client.message() == FlushResponse(REQ, 7)


async def answers_with_credit(server: LogServer[WaltzMessage], service: Answers) -> None:
    """Shows that another peer is answered, by a request that waits for nothing."""
    async with client_of(server) as other:
        await other.greet()
        other.ask(TransactionDataRequest(ReqId(2, 0, 0, 0), 3))
        assert await other.message() == TransactionDataResponse(ReqId(2, 0, 0, 0), 3, bytes(3))
