"""The accepting side's shell: listens, and brings each peer's messages to the service that answers them.

::

    accept ─► TLS ─► Hello ─► message ─► PeerService.take ─► rest, a task ─► reply
                                 ▲             │ in the peer's order        │
                                 └── credit ◄──┴────────────────────────────┘

What a peer can take is bounded (:class:`~kainite.peers.connection.core.Limits`):

=======================================  ======================================================================
a peer                                   then
=======================================  ======================================================================
says no Hello, or garbage, or too long   it is cut; its certificate and its secret are judged before anything else
messages that are not answered yet       nothing is read from it beyond a number and a number of bytes (its credit):
                                         its own sending waits, nobody else's
takes no replies                         its service waits to send; after ``slow`` seconds it is cut
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
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final, Generic, Protocol

from kainite.base.address import Address
from kainite.base.errors import KainiteError, SettingsError
from kainite.base.logs import event
from kainite.base.waiting import wait_until_set
from kainite.peers.connection.codec import Codec, M, M_contra
from kainite.peers.connection.core import Connection, ConnectionState, Limits, Side
from kainite.peers.connection.credit import Credit
from kainite.peers.connection.introduction import Secrets

logger = logging.getLogger(__name__)

MOST_PEERS: Final = 1_000
MOST_GREETING: Final = 64
GREETING_BYTES: Final = 64 * 1024
"""From so many bytes on, nothing more is read from a peer before its Hello was judged."""

LOOK_EVERY_S: Final = 1.0
"""Seconds between two looks for peers that take too long."""

STOP_S: Final = 5.0
"""Seconds that a stop waits for replies under way."""

CLOSE_S: Final = 1.0
"""Seconds that a closed connection may take to send what it still has."""

NAME: Final = "Kainite log"
"""What the Hello of an accepting side says of it."""


class Peer(Protocol[M_contra]):
    """A client, as a service sees it."""

    @property
    def version(self) -> int:
        """Returns the version that is spoken with it."""

    async def send(self, *messages: M_contra) -> None:
        """Sends messages in order; waits while the peer takes none.

        Raises:
            ConnectionError: the peer is gone, or was cut because it takes none.
        """

    def say_alive(self) -> None:
        """Sends a frame that says that this side is alive."""

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Does work beside the peer's messages, until the connection ends; the work's end is the connection's.

        A KainiteError cuts the peer.
        """

    def hang_up(self) -> None:
        """Ends the connection when what was sent has left."""

    def cut(self, why: str) -> None:
        """Ends the connection at once; ``why`` goes into the log."""


class PeerService(Protocol[M]):
    """Answers messages. All methods are called on the server's event loop."""

    @property
    def codec(self) -> Codec[M]:
        """Returns the protocol that is spoken."""

    async def take(self, peer: Peer[M], message: M) -> Coroutine[Any, Any, None] | None:
        """Takes a message; the peer's next one comes when this returns.

        Returns:
            What is left to do for the message, beside the peer's next ones; the message's credit comes back after it.

        Raises:
            KainiteError: the peer is to be cut. What is left to do may raise it as well.
        """

    def left(self, peer: Peer[M]) -> None:
        """Hears that a peer is gone."""


@contextlib.asynccontextmanager
async def serving(
    service: PeerService[M],
    listen: Address,
    *,
    tls: ssl.SSLContext | None = None,
    secrets: Secrets | None = None,
    limits: Limits | None = None,
    key: str = "logListen",
) -> AsyncIterator[LogServer[M]]:
    """Serves until the end, which is a stop with replies sent.

    Args:
        service: answers.
        listen: where; port 0 takes any that is free.
        tls: the owner's side of TLS; None: nothing is encrypted.
        secrets: who may connect.
        limits: what a peer may take.
        key: the settings' key that says where to listen.

    Raises:
        SettingsError: the address cannot be listened on.
    """
    server = LogServer(service, tls, secrets or Secrets(), limits or Limits())
    loop = asyncio.get_running_loop()
    try:
        listening = await loop.create_server(lambda: _PeerConnection(server), listen.host, listen.port)
    except OSError as error:
        raise SettingsError(
            f"{key}: cannot listen on {listen}: {error.strerror or error}; several processes of one host need a"
            " port each (port 0 takes any that is free)"
        ) from error
    server.address = Address(listen.host, listening.sockets[0].getsockname()[1])
    looking = asyncio.create_task(server.look(), name="log service peers")
    event(logger, logging.INFO, "log service listens", address=server.address, key=key, tls=tls is not None)
    try:
        yield server
    finally:
        looking.cancel()
        listening.close()
        await server.stop()


class LogServer(Generic[M]):
    """The peers of a listening service."""

    def __init__(self, service: PeerService[M], tls: ssl.SSLContext | None, secrets: Secrets, limits: Limits) -> None:
        self.service = service
        self.tls = tls
        self.secrets = secrets
        self.limits = limits
        self.address = Address("", 0)
        """Where the server listens."""
        self._peers: dict[_PeerConnection[M], None] = {}  # oldest first
        self._stopped = False

    @property
    def peers(self) -> int:
        """Returns how many peers have said Hello and are connected."""
        return sum(peer.state is ConnectionState.OPEN for peer in self._peers)

    def admit(self, peer: _PeerConnection[M]) -> bool:
        """Returns whether a new connection may stay; for it the oldest one that has said no Hello may have to go."""
        if self._stopped or len(self._peers) >= MOST_PEERS:
            return False
        greeting = [other for other in self._peers if other.state is ConnectionState.GREETING]
        if len(greeting) >= MOST_GREETING:
            greeting[0].cut("too many connections without a Hello")
        self._peers[peer] = None
        return True

    def forget(self, peer: _PeerConnection[M]) -> None:
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


class _PeerConnection(asyncio.Protocol, Generic[M]):
    """One peer: its transport, its connection's state, its credit, and the tasks that answer it."""

    def __init__(self, server: LogServer[M]) -> None:
        limits, self._server = server.limits, server
        self._loop = asyncio.get_running_loop()
        self._connection = Connection(
            server.service.codec, Side.ACCEPTING, self._loop.time(), NAME, limits, judge=server.secrets.judge
        )
        self._credit = Credit(limits.bytes, limits.messages)
        self._has_credit = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._from = ""
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._clogged_since = 0.0
        self._flushes = False  # whether a flush is due in this turn of the loop
        self._conversing: asyncio.Task[None] | None = None
        self._rests: set[asyncio.Task[None]] = set()
        self._beside: set[asyncio.Task[None]] = set()
        self._listens = True
        self._gone = False
        self._lost = asyncio.Event()

    def __repr__(self) -> str:
        return f"<peer {self._from} {self.state.name}>"

    @property
    def state(self) -> ConnectionState:
        return self._connection.state

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
        self._connection.receive(data, self._loop.time())
        self._arrived.set()
        most = self._server.limits.bytes if self.state is ConnectionState.OPEN else GREETING_BYTES
        if self._connection.buffered > most and self._transport is not None:
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
        return self._connection.version

    async def send(self, *messages: M) -> None:
        for message in messages:
            if not self._writable.is_set():
                await self._writable.wait()
            if self._gone or self._transport is None:
                raise ConnectionResetError(f"peer {self._from} is gone")
            self._connection.send(message)
            self._flush_soon()

    def say_alive(self) -> None:
        self._connection.keep_alive()
        self._flush_soon()

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._start(self._do_beside(work), work, self._beside)

    def hang_up(self) -> None:
        if self._transport is not None and not self._gone:
            self._flush()
            transport, self._transport = self._transport, None
            transport.close()
            self._loop.call_later(CLOSE_S, transport.abort)
        self._end()

    def cut(self, why: str) -> None:
        if not self._gone:
            event(logger, logging.WARNING, "log peer cut", peer=self._from, cause=why)
        self._end()

    # What the server calls

    def look(self) -> None:
        """Cuts the peer if it takes too long."""
        now = self._loop.time()
        why = self._connection.overdue(now) if self._listens else None
        if why is None and not self._writable.is_set() and now - self._clogged_since > self._server.limits.slow:
            why = f"has taken nothing for {self._server.limits.slow:g} s"
        if why is not None:
            self.cut(why)

    async def stop(self) -> None:
        """Takes no further message, waits for the replies under way, and closes."""
        for task in self._beside:
            task.cancel()
        if self._conversing is not None:
            self._conversing.cancel()
            await asyncio.wait({self._conversing}, timeout=STOP_S)
        if self._rests:
            await asyncio.wait(self._rests, timeout=STOP_S)
        if self.state is ConnectionState.OPEN and self._transport is not None and not self._gone:
            self._flush()
            self._transport.close()
            await wait_until_set(self._lost, STOP_S)
        self._end()

    async def _converse(self) -> None:
        try:
            await self._secure()
            while not self._gone:
                await self._take_next()
        except (KainiteError, ssl.SSLError) as error:
            if self.state is ConnectionState.CLOSED and not self._gone:  # the Hello may be answered with a refusal
                event(logger, logging.WARNING, "log peer cut", peer=self._from, cause=str(error))
                self.hang_up()
            else:
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

    async def _take_next(self) -> None:
        """Takes one message, or waits for more bytes."""
        received = self._connection.next_message(self._loop.time())
        if received is None:
            self._flush()  # the Hello, at first
            await self._more()
            return
        await self._take_credit(received.size)
        rest = await self._server.service.take(self, received.message)
        if rest is None:
            self._give_credit(received.size)
            return
        self._start(self._finish(rest, received.size), rest, self._rests)

    async def _more(self) -> None:
        """Waits for more bytes."""
        self._arrived.clear()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        self._listens = True
        await self._arrived.wait()
        self._listens = False

    def _start(
        self, work: Coroutine[Any, Any, None], inner: Coroutine[Any, Any, None], among: set[asyncio.Task[None]]
    ) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        among.add(task)
        task.add_done_callback(among.discard)
        task.add_done_callback(lambda _: inner.close())  # for a task that is cancelled before it begins
        return task

    async def _finish(self, rest: Coroutine[Any, Any, None], size: int) -> None:
        try:
            await self._answer(rest)
        finally:
            self._give_credit(size)

    async def _do_beside(self, work: Coroutine[Any, Any, None]) -> None:
        await self._answer(work)
        self.hang_up()

    async def _answer(self, work: Coroutine[Any, Any, None]) -> None:
        """Does work for the peer; the connection ends if the work fails."""
        try:
            await work
        except KainiteError as error:
            self.cut(str(error))
        except OSError:
            self._end()
        except Exception:
            logger.exception("log peer %s: its message could not be answered", self._from)
            self._end()

    async def _take_credit(self, size: int) -> None:
        while not self._credit.has_room(size):
            self._has_credit.clear()
            await self._has_credit.wait()
        self._credit.take(size)

    def _give_credit(self, size: int) -> None:
        self._credit.give(size)
        self._has_credit.set()

    def _flush_soon(self) -> None:
        """Sends what one turn of the loop says together: a durable batch answers many appends at once."""
        if not self._flushes:
            self._flushes = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushes = False
        if self._transport is not None and not self._gone and (data := self._connection.to_send()):
            self._transport.write(data)

    def _end(self) -> None:
        """Ends the conversation; the service hears of it once."""
        if self._gone:
            return
        self._gone = True
        self._writable.set()
        self._server.forget(self)
        if self._transport is not None:
            self._transport.abort()
        for task in (self._conversing, *self._rests, *self._beside):
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
