"""The accepting side's shell: listens, and brings each peer's messages to the service that answers them.

::

    accept ─► TLS ─► Hello ─► message ─► PeerService.take ─► rest, a task ─► reply
                                 ▲             │ in the peer's order        │
                                 └── credit ◄──┴────────────────────────────┘

Each peer's use of the server is bounded (:class:`~kainite.peers.connection.core.Limits`):

=======================================  ======================================================================
a peer                                   what the server does
=======================================  ======================================================================
says no Hello, garbage, or too much      cuts it; judges its certificate and its secret before anything else
has many unanswered messages             reads nothing more from it beyond a number of messages and of bytes (its
                                         credit): its own sending waits, nobody else's
reads no replies                         lets its service wait to send; cuts it after ``slow`` seconds
is silent                                cuts it after ``silent`` seconds; TCP notices a host that is gone
makes hundreds of connections            refuses connections beyond MOST_PEERS; if more than MOST_GREETING have said
                                         no Hello, cuts the oldest of these, so that they keep nobody else out
=======================================  ======================================================================

A server that stops takes no further connection and no further message, waits for the replies under way, and closes all
connections. Cutting a peer at any time is safe: it asks again, or learns from the durable log whether its request was
carried out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator
from typing import Final, Generic

from kainite.base.address import Address
from kainite.base.errors import SettingsError
from kainite.base.logs import event
from kainite.peers.accepted import AcceptedPeer, AcceptingTerms
from kainite.peers.connection.codec import M
from kainite.peers.connection.core import ConnectionState, Limits
from kainite.peers.connection.introduction import Secrets
from kainite.peers.service import PeerService

_logger = logging.getLogger(__name__)

MOST_PEERS: Final = 1_000
MOST_GREETING: Final = 64

LOOK_EVERY_S: Final = 1.0
"""Seconds between two looks for peers that take too long."""


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
    """Serves peers while entered; at the end, sends the replies under way and closes all connections.

    Args:
        service: answers the peers' messages.
        listen: the address to listen on; port 0 means any free port.
        tls: the accepting side's TLS context; None means that nothing is encrypted.
        secrets: the users that may connect.
        limits: bounds on a peer's messages and times.
        key: the settings' key of the address to listen on, for the error.

    Raises:
        SettingsError: this process cannot listen on the address.
    """
    server = LogServer(service, tls, secrets or Secrets(), limits or Limits())
    loop = asyncio.get_running_loop()
    try:
        listening = await loop.create_server(lambda: AcceptedPeer(server.terms), listen.host, listen.port)
    except OSError as error:
        raise SettingsError(
            f"{key}: cannot listen on {listen}: {error.strerror or error}; several processes of one host need a"
            " port each (port 0 takes any that is free)"
        ) from error
    server.address = Address(listen.host, listening.sockets[0].getsockname()[1])
    looking = asyncio.create_task(server.look(), name="log service peers")
    event(_logger, logging.INFO, "log service listens", address=server.address, key=key, tls=tls is not None)
    try:
        yield server
    finally:
        looking.cancel()
        listening.close()
        await server.stop()


class LogServer(Generic[M]):
    """The peers of a listening service."""

    def __init__(self, service: PeerService[M], tls: ssl.SSLContext | None, secrets: Secrets, limits: Limits) -> None:
        self.terms = AcceptingTerms(service, tls, secrets, limits, self.admit, self.forget)
        self.address = Address("", 0)
        """The address on which the server listens."""
        self._peers: dict[AcceptedPeer[M], None] = {}  # oldest first
        self._stopped = False

    @property
    def peers(self) -> int:
        """Returns how many peers have said Hello and are connected."""
        return sum(peer.state is ConnectionState.OPEN for peer in self._peers)

    def admit(self, peer: AcceptedPeer[M]) -> bool:
        """Returns whether a new connection may stay; may cut the oldest one without a Hello to make room."""
        if self._stopped or len(self._peers) >= MOST_PEERS:
            return False
        greeting = [other for other in self._peers if other.state is ConnectionState.GREETING]
        if len(greeting) >= MOST_GREETING:
            greeting[0].cut("too many connections without a Hello")
        self._peers[peer] = None
        return True

    def forget(self, peer: AcceptedPeer[M]) -> None:
        self._peers.pop(peer, None)

    async def look(self) -> None:
        """Looks for peers that take too long, again and again, and cuts them; runs until cancelled."""
        while True:
            limits = self.terms.limits
            await asyncio.sleep(min(LOOK_EVERY_S, limits.greeting, limits.silent, limits.slow))
            for peer in tuple(self._peers):
                peer.look()

    async def stop(self) -> None:
        """Takes no further message, waits for the replies under way, and closes all connections."""
        self._stopped = True
        peers = tuple(self._peers)
        if peers:
            await asyncio.gather(*(peer.stop() for peer in peers))
