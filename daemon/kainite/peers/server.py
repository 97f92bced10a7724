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
        """Where the server listens."""
        self._peers: dict[AcceptedPeer[M], None] = {}  # oldest first
        self._stopped = False

    @property
    def peers(self) -> int:
        """Returns how many peers have said Hello and are connected."""
        return sum(peer.state is ConnectionState.OPEN for peer in self._peers)

    def admit(self, peer: AcceptedPeer[M]) -> bool:
        """Returns whether a new connection may stay; for it the oldest one that has said no Hello may have to go."""
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
        """Cuts peers that take too long, for ever."""
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
