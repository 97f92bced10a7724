"""The owner's side of the log's service: listens, and brings each peer's messages to what answers them.

::

    accept ─► TLS ─► Hello ─► message ─► Service.take ─► rest, a task ─► reply
                                 ▲             │ in the peer's order        │
                                 └── credit ◄──┴────────────────────────────┘

What a peer can take is bounded (:class:`~kainite.peers.connection.Limits`):

=======================================  ======================================================================
a peer                                   then
=======================================  ======================================================================
says no Hello, or garbage, or too long   it is cut; its certificate and its secret are judged before anything else
messages that are not answered yet       nothing is read from it beyond a number and a number of bytes (its credit):
                                         its own sending waits, nobody else's
takes no replies                         its services wait to send; after ``slow`` seconds it is cut
is silent                                it is cut after ``silent`` seconds; a host that is gone is noticed by TCP
comes with hundreds of connections       beyond MOST_PEERS they are refused; of those that have said no Hello the
                                         oldest is cut beyond MOST_GREETING, so that they keep nobody else out
=======================================  ======================================================================

A stop takes no further connection and no further message, waits for the replies under way, and closes. Cutting a peer
at any time is safe: what it was not answered it asks again, or learns from what is durable.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from typing import Any, Final, Protocol, TypeAlias

from kainite.base.address import Address
from kainite.base.errors import KainiteError, SettingsError
from kainite.base.logs import event
from kainite.base.waiting import wait_until_set
from kainite.peers.connection import Connection, Limits, State
from kainite.peers.introduction import Secrets
from kainite.peers.wire.hello import Hello, encode_hello
from kainite.peers.wire.layouts import Message

logger = logging.getLogger(__name__)

MOST_PEERS: Final = 1_000
MOST_GREETING: Final = 64
GREETING_BYTES: Final = 64 * 1024
"""From so many bytes on, nothing more is read from a peer before its Hello was judged."""

LOOK_EVERY_S: Final = 1.0
"""Seconds between two looks for peers that take too long."""

STOP_S: Final = 5.0
"""Seconds that a stop waits for replies under way."""

HELLO_FIRST_S: Final = 2.0
"""Seconds for which a peer's Hello is waited for, where its version decides who answers."""

NAME: Final = "Kainite log"


class Peer(Protocol):
    """A client, as a service sees it."""

    @property
    def version(self) -> int: ...

    async def send(self, *messages: Message) -> None:
        """Sends messages in order; waits while the peer takes none.

        Raises:
            ConnectionError: the peer is gone, or was cut because it takes none.
        """

    def cut(self, why: str) -> None:
        """Ends the connection at once; ``why`` goes into the log."""


Stream: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
"""Answers a connection by itself: reads the peer's Hello first, and says its own; at its end the connection ends."""


class Service(Protocol):
    """What answers messages. All methods are called on the server's event loop."""

    @property
    def versions(self) -> Collection[int]: ...

    async def take(self, peer: Peer, message: Message) -> Coroutine[Any, Any, None] | None:
        """Takes a message; the peer's next one comes when this returns.

        Returns:
            What is left to do, to be done beside the peer's next messages; the peer's credit comes back after it.

        Raises:
            KainiteError: the peer is cut; so for what is left to do.
        """

    def left(self, peer: Peer) -> None:
        """Hears that a peer is gone."""


@contextlib.asynccontextmanager
async def serving(
    service: Service,
    listen: Address,
    *,
    tls: ssl.SSLContext | None = None,
    secrets: Secrets | None = None,
    limits: Limits | None = None,
    streams: Mapping[int, Stream] | None = None,
) -> AsyncIterator[LogServer]:
    """Serves until the end, which is a stop with replies sent.

    Args:
        service: answers.
        listen: where; port 0 takes any that is free.
        tls: the owner's side of TLS; None: nothing is encrypted.
        secrets: who may connect.
        limits: what a peer may take.
        streams: what answers peers of further versions, by version. These are judged here, and bounded there.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    server = LogServer(service, tls, secrets or Secrets(), limits or Limits(), streams or {})
    loop = asyncio.get_running_loop()
    try:
        listening = await loop.create_server(lambda: _Conversation(server), listen.host, listen.port)
    except OSError as error:
        raise SettingsError(
            f"logListen: cannot listen on {listen}: {error.strerror or error}; several processes of one host need a"
            " port each (port 0 takes any that is free)"
        ) from error
    server.address = Address(listen.host, listening.sockets[0].getsockname()[1])
    looking = asyncio.create_task(server.look(), name="log service peers")
    event(logger, logging.INFO, "log service listens", address=server.address, tls=tls is not None)
    try:
        yield server
    finally:
        looking.cancel()
        listening.close()
        await server.stop()


class LogServer:
    """The peers of a listening service."""

    def __init__(
        self,
        service: Service,
        tls: ssl.SSLContext | None,
        secrets: Secrets,
        limits: Limits,
        streams: Mapping[int, Stream],
    ) -> None:
        self.service = service
        self.streams = streams
        self.tls = tls
        self.secrets = secrets
        self.limits = limits
        self.address = Address("", 0)
        """Where the server listens."""
        self._peers: dict[_Conversation, None] = {}  # oldest first
        self._stopped = False

    @property
    def peers(self) -> int:
        """Returns how many peers have said Hello and are connected."""
        return sum(peer.connection.state is State.OPEN for peer in self._peers)

    def admit(self, peer: _Conversation) -> bool:
        """Returns whether a new connection may stay; for it the oldest one that has said no Hello may have to go."""
        if self._stopped or len(self._peers) >= MOST_PEERS:
            return False
        greeting = [other for other in self._peers if other.connection.state is State.GREETING]
        if len(greeting) >= MOST_GREETING:
            greeting[0].cut("too many connections without a Hello")
        self._peers[peer] = None
        return True

    def forget(self, peer: _Conversation) -> None:
        self._peers.pop(peer, None)

    async def look(self) -> None:
        """Cuts peers that take too long, for ever."""
        while True:
            await asyncio.sleep(min(LOOK_EVERY_S, self.limits.greeting, self.limits.silent, self.limits.slow))
            for peer in tuple(self._peers):
                peer.look()

    async def stop(self) -> None:
        """Takes no further message, waits for the replies under way, and closes all connections."""
        self._stopped = True
        peers = tuple(self._peers)
        if peers:
            await asyncio.gather(*(peer.stop() for peer in peers))


class _Conversation(asyncio.Protocol):
    """One peer: its transport, its connection's state, its credit, and the tasks that answer it."""

    def __init__(self, server: LogServer) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self.connection = Connection(
            (*server.service.versions, *server.streams), self._loop.time(), server.limits, judge=server.secrets.judge
        )
        self._raw = bytearray()  # what came until the greeting was over
        self._transport: asyncio.Transport | None = None
        self._from = ""
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._clogged_since = 0.0
        self._credit = asyncio.Event()
        self._messages = self._bytes = 0
        self._conversing: asyncio.Task[None] | None = None
        self._rests: set[asyncio.Task[None]] = set()
        self._listens = True
        self._gone = False
        self._lost = asyncio.Event()

    def __repr__(self) -> str:
        return f"<peer {self._from} {self.connection.state.name}>"

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._from = _name_of(transport)
        if not self._server.admit(self):
            transport.abort()
            return
        transport.pause_reading()  # what comes before TLS is there belongs to TLS
        self._conversing = self._loop.create_task(self._converse(), name=f"log peer {self._from}")

    def data_received(self, data: bytes) -> None:
        if self.connection.state is State.GREETING and self._server.streams:
            self._raw += data
        self.connection.receive(data, self._loop.time())
        self._arrived.set()
        most = self._server.limits.bytes if self.connection.state is State.OPEN else GREETING_BYTES
        if self.connection.buffered > most and self._transport is not None:
            self._transport.pause_reading()

    def pause_writing(self) -> None:
        self._clogged_since = self._loop.time()
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost.set()
        self._end()

    # What services call

    @property
    def version(self) -> int:
        return self.connection.version

    async def send(self, *messages: Message) -> None:
        for message in messages:
            frame = self.connection.encode(message)
            if not self._writable.is_set():
                await self._writable.wait()
            if self._gone or self._transport is None:
                raise ConnectionResetError(f"peer {self._from} is gone")
            self._transport.write(frame)

    def cut(self, why: str) -> None:
        if not self._gone:
            event(logger, logging.WARNING, "log peer cut", peer=self._from, cause=why)
        self._end()

    # What the server calls

    def look(self) -> None:
        """Cuts the peer if it takes too long."""
        now = self._loop.time()
        why = self.connection.overdue(now) if self._listens else None
        if why is None and not self._writable.is_set() and now - self._clogged_since > self._server.limits.slow:
            why = f"has taken nothing for {self._server.limits.slow:g} s"
        if why is not None:
            self.cut(why)

    async def stop(self) -> None:
        """Takes no further message, waits for the replies under way, and closes."""
        if self._conversing is not None:
            self._conversing.cancel()
            await asyncio.wait({self._conversing}, timeout=STOP_S)
        if self._rests:
            await asyncio.wait(self._rests, timeout=STOP_S)
        if self.connection.state is State.OPEN and self._transport is not None and not self._gone:
            self._transport.close()
            await wait_until_set(self._lost, STOP_S)
        self._end()

    async def _converse(self) -> None:
        try:
            await self._secure()
            assert self._transport is not None
            stream = await self._greet()
            if stream is not None:
                await self._hand_over(stream)
            while not self._gone:
                await self._take_next()
        except (KainiteError, ssl.SSLError) as error:
            self.cut(str(error))
        except OSError:
            self._end()
        except Exception:
            logger.exception("log peer %s: its message could not be taken", self._from)
            self._end()

    async def _secure(self) -> None:
        """Begins to read, over TLS where it is set."""
        assert self._transport is not None
        if self._server.tls is None:
            self._transport.resume_reading()
            return
        secured = await self._loop.start_tls(
            self._transport,
            self,
            self._server.tls,
            server_side=True,
            ssl_handshake_timeout=self._server.limits.greeting,
        )
        if secured is None or self._gone:
            raise ConnectionResetError(f"peer {self._from} is gone")
        self._transport = secured

    async def _greet(self) -> Stream | None:
        """Says Hello; returns what answers the peer, if it is a stream.

        A stream says its own Hello. So where there are streams, the peer's Hello is waited for, but not for long: a
        peer may wait as well.
        """
        assert self._transport is not None
        if self._server.streams:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HELLO_FIRST_S if self._server.service.versions else None):
                    while self.connection.state is State.GREETING:
                        self.connection.greet(self._loop.time())
                        if self.connection.state is State.GREETING:
                            await self._more()
            if self.connection.state is State.OPEN and self.connection.version in self._server.streams:
                return self._server.streams[self.connection.version]
        self._raw.clear()
        versions = tuple(sorted(self._server.service.versions))
        self._transport.write(encode_hello(Hello(versions, NAME)))
        self.connection.offer(versions)
        return None

    async def _hand_over(self, stream: Stream) -> None:
        """Has a stream answer the peer, to the connection's end."""
        assert self._transport is not None
        self._listens = False
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        reader.feed_data(bytes(self._raw))
        self._raw.clear()
        self._transport.resume_reading()
        writer = asyncio.StreamWriter(self._transport, protocol, reader, self._loop)
        try:
            await stream(reader, writer)
        finally:
            writer.transport.abort()
            self._lost.set()
        self._end()

    async def _more(self) -> None:
        """Waits for more bytes."""
        self._arrived.clear()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        self._listens = True
        await self._arrived.wait()
        self._listens = False

    async def _take_next(self) -> None:
        """Takes one message, or waits for more bytes."""
        received = self.connection.next_message(self._loop.time())
        if received is None:
            await self._more()
            return
        await self._take_credit(received.size)
        rest = await self._server.service.take(self, received.message)
        if rest is None:
            self._give_credit(received.size)
            return
        task = self._loop.create_task(self._finish(rest, received.size))
        self._rests.add(task)
        task.add_done_callback(self._rests.discard)
        task.add_done_callback(lambda _: rest.close())  # for a task that is cancelled before it begins

    async def _finish(self, rest: Coroutine[Any, Any, None], size: int) -> None:
        try:
            await rest
        except KainiteError as error:
            self.cut(str(error))
        except OSError:
            self._end()
        except Exception:
            logger.exception("log peer %s: its message could not be answered", self._from)
            self._end()
        finally:
            self._give_credit(size)

    async def _take_credit(self, size: int) -> None:
        limits = self._server.limits
        while self._messages >= limits.messages or (self._messages and self._bytes + size > limits.bytes):
            self._credit.clear()
            await self._credit.wait()
        self._messages += 1
        self._bytes += size

    def _give_credit(self, size: int) -> None:
        self._messages -= 1
        self._bytes -= size
        self._credit.set()

    def _end(self) -> None:
        """Ends the conversation; services hear of it once."""
        if self._gone:
            return
        self._gone = True
        self._writable.set()
        self._server.forget(self)
        if self._transport is not None:
            self._transport.abort()
        for task in (self._conversing, *self._rests):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        self._server.service.left(self)


def _name_of(transport: asyncio.Transport) -> str:
    """Returns where a peer connects from, and makes TCP notice when its host is gone."""
    connected = transport.get_extra_info("socket")
    if connected is not None:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    name = transport.get_extra_info("peername")
    return str(Address(*name[:2])) if isinstance(name, tuple) else "?"
