"""Relays before real servers, at which one connection is held at a chosen text: a statement, or a request.

Whoever is connected through a relay is a real client of a real server. A *hold* waits for the first request with its
text. It keeps that request from the server, or the server's answer from the client; so somebody can be killed while
another one stands at exactly that step. All other connections go on.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from kainite.base.end_listening import end_listening

_CHUNK: Final = 1 << 16

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(eq=False)
class Hold:
    """A step at which one connection stands.

    Attributes:
        text: the bytes of the request.
        answer: whether the server gets the request, and the client no answer; else the server does not get it.
        reached: set when the connection stands there.
        over: set when it may go on.
    """

    text: bytes
    answer: bool
    reached: threading.Event = field(default_factory=threading.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def stand(self) -> None:
        self.reached.set()
        await self.over.wait()


class Relay:
    """What stands before one server.

    Args:
        connect: opens a connection to the server.
    """

    def __init__(self, connect: Callable[[], Coroutine[Any, Any, Streams]]) -> None:
        self._connect = connect
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.hold: Hold | None = None

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes on what a client and the server say, until one of them ends; ends both connections then."""
        task = asyncio.create_task(self._connect_both(reader, writer))
        self._connections[task] = writer
        task.add_done_callback(self._connections.pop)

    async def _connect_both(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.CancelledError):
                far_reader, far_writer = await self._connect()
                try:
                    await self._pass_on((reader, writer), (far_reader, far_writer))
                finally:
                    far_writer.transport.abort()
        finally:
            writer.transport.abort()

    async def close(self) -> None:
        """Ends all connections."""
        connections = dict(self._connections)
        for task, writer in connections.items():
            task.cancel()
            writer.transport.abort()  # a task that is cancelled before it begins aborts nothing
        await asyncio.gather(*connections, return_exceptions=True)

    async def _pass_on(self, client: Streams, server: Streams) -> None:
        held: list[Hold] = []  # whose answers are kept from this client
        ways = [asyncio.ensure_future(self._requests(client[0], server[1], held)),
                asyncio.ensure_future(self._answers(server[0], client[1], held))]  # fmt: skip
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _requests(self, client: asyncio.StreamReader, server: asyncio.StreamWriter, held: list[Hold]) -> None:
        seen = b""
        while data := await client.read(_CHUNK):
            seen += data
            if (hold := self.hold) is not None and hold.text in seen:
                self.hold = None
                if hold.answer:
                    held.append(hold)
                else:
                    await hold.stand()
                    if client.at_eof():  # it was killed before it had sent this
                        return
            seen = seen[-len(hold.text) :] if hold is not None else b""
            server.write(data)
            await server.drain()

    async def _answers(self, server: asyncio.StreamReader, client: asyncio.StreamWriter, held: list[Hold]) -> None:
        while data := await server.read(_CHUNK):
            if held:
                await held.pop().stand()
            client.write(data)
            await client.drain()


class Relays:
    """The relays of a test, on an event loop in a thread of its own (:func:`relays`)."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._relays: list[Relay] = []
        self._servers: list[asyncio.Server] = []

    def at_socket(self, path: Path, server: Path) -> Relay:
        """Puts a relay at a socket's path, before the server at another one."""
        relay = self._added(Relay(lambda: asyncio.open_unix_connection(str(server))))
        self._servers.append(self.call(asyncio.start_unix_server(relay.serve, str(path))))
        return relay

    def at_port(self, server: int) -> tuple[Relay, int]:
        """Puts a relay before a port of loopback; returns its own port, too."""
        relay = self._added(Relay(lambda: asyncio.open_connection("127.0.0.1", server)))
        listening = self.call(asyncio.start_server(relay.serve, "127.0.0.1", 0))
        self._servers.append(listening)
        return relay, int(listening.sockets[0].getsockname()[1])

    @contextmanager
    def holding(self, relay: Relay, text: bytes, *, answer: bool) -> Iterator[Hold]:
        """Holds the first connection that sends a request with this text, while entered."""
        hold = Hold(text, answer)
        self._loop.call_soon_threadsafe(setattr, relay, "hold", hold)
        try:
            yield hold
        finally:
            self.call(self._let_go(relay, hold))

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Returns what a coroutine returns on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def close(self) -> None:
        """Ends all connections."""
        for server in self._servers:
            await end_listening(server)
        for relay in self._relays:
            await relay.close()

    def _added(self, relay: Relay) -> Relay:
        self._relays.append(relay)
        return relay

    async def _let_go(self, relay: Relay, hold: Hold) -> None:
        hold.over.set()
        if relay.hold is hold:
            relay.hold = None


@contextmanager
def relays() -> Iterator[Relays]:
    """Runs the event loop of a test's relays."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="relays")
    thread.start()
    made = Relays(loop)
    try:
        yield made
    finally:
        made.call(made.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
