"""Who is up to no good: speaks the peers' protocol frame by frame, and says whatever it likes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from kainite.peers.connection.frames import HEADER_SIZE, MESSAGE, PEERS_HELLO, PROOF, encode_frame, header
from kainite.peers.connection.hello import Hello, decode_hello, encode_hello
from kainite.peers.connection.introduction import Introduction, introducing, new_nonce
from kainite.peers.messages import PEERS, Message
from kainite.peers.network import Reachable

LIMIT_S = 30.0


class Attacker:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def frame(self) -> tuple[int, bytes]:
        """Returns the next frame's magic and body."""
        async with asyncio.timeout(LIMIT_S):
            head = await self.reader.readexactly(HEADER_SIZE)
            return head[0], await self.reader.readexactly(int.from_bytes(head[3:]))

    async def owners_hello(self) -> Hello:
        magic, body = await self.frame()
        assert magic == PEERS_HELLO
        return decode_hello(body)

    def say(self, hello: Hello, *messages: Message) -> None:
        """Says a Hello of the attacker's own, and messages at once behind it."""
        self.writer.write(encode_hello(PEERS_HELLO, hello))
        self.ask(*messages)

    def ask(self, *messages: Message) -> None:
        for message in messages:
            self.writer.write(encode_frame(MESSAGE, 1, PEERS.encode(1, message)))

    def begin_frame(self, length: int, data: bytes = b"") -> None:
        """Begins a message of so many bytes, and sends the first of them."""
        self.writer.write(header(MESSAGE, 1, length) + data)

    async def prove(self, who: Introduction) -> bool:
        """Exchanges Hellos and proofs as a true peer; returns whether it was let in."""
        theirs = await self.owners_hello()
        hello, expected = introducing(who, new_nonce(), Hello((1,), None), theirs)
        self.writer.write(encode_hello(PEERS_HELLO, hello))
        return await self.frame() == (PROOF, expected)

    async def heard(self) -> list[Message]:
        """Returns all messages until the connection ends; a proof that is refused is none."""
        found: list[Message] = []
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                magic, body = await self.frame()
                if magic == MESSAGE and body:
                    found.append(PEERS.decode(1, body))
        return found


@contextlib.asynccontextmanager
async def attacker(address: Reachable) -> AsyncIterator[Attacker]:
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        yield Attacker(reader, writer)
    finally:
        writer.transport.abort()
