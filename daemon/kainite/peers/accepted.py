"""One accepted connection: its transport, the state of its connection, its credit, and the tasks that answer it.

=========  ======================================================  ================================================
phase      event                                                   next
=========  ======================================================  ================================================
securing   TLS is established, or not configured                   conversing
conversing a message                                               conversing; the service takes it
any        the peer breaks the protocol or takes too long, the     gone; every task for the peer is cancelled, and
           service cuts it or hangs up, the transport is lost      the service hears of it once
=========  ======================================================  ================================================
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, Generic

from kainite.base.address import Address
from kainite.base.errors import KainiteError
from kainite.base.waiting import wait_until_set
from kainite.peers.byte_budget import LONG, ByteBudget
from kainite.peers.connection.codec import M
from kainite.peers.connection.core import Accepting, Connection, ConnectionState, Limits
from kainite.peers.connection.credit import Credit
from kainite.peers.connection.introduction import Door, Guest
from kainite.peers.refusals import Refusals
from kainite.peers.service import PeerService

logger = logging.getLogger(__name__)

READ_AHEAD: Final = 256 * 1024
"""From so many bytes on, nothing more is read from a peer while its service has not taken the last message."""

STOP_S: Final = 5.0
"""Seconds for which a stop waits for replies under way."""

CLOSE_S: Final = 1.0
"""Seconds that a closed connection may take to send the bytes that wait."""

NAME: Final = "Kainite log"
"""The message in the Hello of an accepting side: the side's name."""


@dataclass(frozen=True, slots=True)
class AcceptingTerms(Generic[M]):
    """What a server's peers have in common.

    Attributes:
        service: answers the peers' messages.
        tls: returns the accepting side's TLS context at present; None means that nothing is encrypted.
        door: decides who is let in.
        limits: bounds on a peer's messages and times.
        budget: the bytes that the messages of all peers may have.
        refusals: is told of peers that are cut or turned away.
        admit: returns whether a new connection may stay.
        let_in: returns why a peer that has proved itself may not stay; None if it may.
        forget: called when a connection has ended.
    """

    service: PeerService[M]
    tls: Callable[[], ssl.SSLContext | None]
    door: Door
    limits: Limits
    budget: ByteBudget
    refusals: Refusals
    admit: Callable[[AcceptedPeer[M]], bool]
    let_in: Callable[[AcceptedPeer[M]], str | None]
    forget: Callable[[AcceptedPeer[M]], None]


class AcceptedPeer(asyncio.Protocol, Generic[M]):
    """One peer: its transport, its connection's state, its credit, and the tasks that answer it."""

    def __init__(self, terms: AcceptingTerms[M]) -> None:
        limits, self._terms = terms.limits, terms
        self._loop = asyncio.get_running_loop()
        self._connection = Connection(terms.service.codec, Accepting(NAME, terms.door), self._loop.time(), limits)
        self._credit = Credit(limits.bytes, limits.messages)
        self._has_credit = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self.place = ""
        """Where the peer connects from."""
        self.host = ""
        """The host of that place."""
        self.counted = False
        """Whether the server counts it among the peers of its user."""
        self._taken = 0  # bytes of the budget
        self._ahead = 0  # those of them that were taken for a message that is not whole yet
        self._is_in = False
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
        return f"<peer {self.place} {self.state.name}>"

    @property
    def state(self) -> ConnectionState:
        return self._connection.state

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.host, self.place = _name_of(transport)
        if not self._terms.admit(self):
            transport.abort()
            return
        transport.pause_reading()  # the bytes until TLS is established belong to TLS
        self._conversing = self._loop.create_task(self._converse(), name=f"log peer {self.place}")

    def data_received(self, data: bytes) -> None:
        self._connection.receive(data, self._loop.time())
        self._arrived.set()
        if not self._listens and self._connection.buffered > READ_AHEAD and self._transport is not None:
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

    @property
    def guest(self) -> Guest:
        return self._connection.guest

    def allow_long(self) -> None:
        self._connection.allow_long()

    async def send(self, *messages: M) -> None:
        for message in messages:
            if not self._writable.is_set():
                await self._writable.wait()
            if self._gone or self._transport is None:
                raise ConnectionResetError(f"peer {self.place} is gone")
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
            self._terms.refusals.tell(self.place, self.guest.user, why)
        self._end()

    # What the server calls

    def look(self) -> None:
        """Cuts the peer if it takes too long, or if it was let in by what is revoked."""
        if self._is_in and self._terms.door.has_revoked(self.guest):
            self.cut("the user is gone from logSecretFile, or has another secret or other rights there")
            return
        now = self._loop.time()
        why = self._connection.overdue(now) if self._listens else None
        if why is None and not self._writable.is_set() and now - self._clogged_since > self._terms.limits.slow:
            why = f"has taken nothing for {self._terms.limits.slow:g} s"
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
                self._terms.refusals.tell(self.place, self.guest.user, str(error))
                self.hang_up()
            else:
                self.cut(str(error))
        except OSError:
            self._end()
        except Exception:
            logger.exception("log peer %s: its message could not be taken", self.place)
            self._end()

    async def _secure(self) -> None:
        """Begins to read, over TLS if TLS is configured."""
        assert self._transport is not None
        if (tls := self._terms.tls()) is None:
            self._transport.resume_reading()
            return
        secured = await self._loop.start_tls(
            self._transport,
            self,
            tls,
            server_side=True,
            ssl_handshake_timeout=self._terms.limits.greeting,
        )
        if secured is None or self._gone:
            raise ConnectionResetError(f"peer {self.place} is gone")
        self._transport = secured

    async def _take_next(self) -> None:
        """Takes one message, or waits for more bytes."""
        received = self._connection.next_message(self._loop.time())
        self._note_state()
        if self._gone:
            return
        if received is None:
            self._flush()  # the Hello, at first
            await self._make_room(self._connection.announced)
            await self._more()
            return
        await self._take_credit(received.size)
        await self._take_budget(received.size)
        rest = await self._terms.service.take(self, received.message)
        if rest is None:
            self._give_credit(received.size)
            return
        self._start(self._finish(rest, received.size), rest, self._rests)

    def _note_state(self) -> None:
        """Asks whether the peer may stay, once it has proved itself."""
        if not self._is_in and self.state is ConnectionState.OPEN:
            self._is_in = True
            if (why := self._terms.let_in(self)) is not None:
                self.cut(why)

    async def _make_room(self, size: int) -> None:
        """Takes the bytes of a long message out of the budget before more of it is read."""
        if size <= LONG or self._ahead:
            return
        if self._transport is not None:
            self._transport.pause_reading()
        await self._terms.budget.take(size)
        self._ahead, self._taken = size, self._taken + size
        self._connection.goes_on(self._loop.time())

    async def _take_budget(self, size: int) -> None:
        """Takes the bytes of a whole message out of the budget."""
        if self._ahead:
            self._ahead = 0
        else:
            await self._terms.budget.take(size)
            self._taken += size

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
        task.add_done_callback(lambda _: inner.close())  # a task that is cancelled before it begins closes nothing
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
            logger.exception("log peer %s: its message could not be answered", self.place)
            self._end()

    async def _take_credit(self, size: int) -> None:
        while not self._credit.has_room(size):
            self._has_credit.clear()
            await self._has_credit.wait()
        self._credit.take(size)

    def _give_credit(self, size: int) -> None:
        self._credit.give(size)
        if not self._gone:
            self._give_budget(size)
        self._has_credit.set()

    def _give_budget(self, size: int) -> None:
        self._taken -= size
        self._terms.budget.give(size)

    def _flush_soon(self) -> None:
        """Sends all messages of one turn of the loop together: a durable batch answers many appends at once."""
        if not self._flushes:
            self._flushes = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushes = False
        if self._transport is not None and not self._gone and (data := self._connection.to_send()):
            self._transport.write(data)

    def _end(self) -> None:
        """Ends the conversation, and tells the service once."""
        if self._gone:
            return
        self._gone = True
        self._give_budget(self._taken)
        self._writable.set()
        self._terms.forget(self)
        if self._transport is not None:
            self._transport.abort()
        for task in (self._conversing, *self._rests, *self._beside):
            if task is not None and task is not asyncio.current_task():
                task.cancel()
        self._terms.service.left(self)


def _name_of(transport: asyncio.Transport) -> tuple[str, str]:
    """Returns the host and the place from which a peer connects, and makes TCP notice when the host is gone."""
    connected = transport.get_extra_info("socket")
    if connected is not None:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    name = transport.get_extra_info("peername")
    return (str(name[0]), str(Address(*name[:2]))) if isinstance(name, tuple) else ("?", "?")
