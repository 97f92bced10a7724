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
is not let in                            refuses it: each is counted, few are logged (:mod:`kainite.peers.refusals`)
sends a long message                     takes its bytes out of a budget of all peers before it reads them
                                         (:mod:`kainite.peers.byte_budget`)
has many unanswered messages             reads nothing more from it beyond a number of messages and of bytes (its
                                         credit): its own sending waits, nobody else's
is revoked                               cuts it within a second
reads no replies                         lets its service wait to send; cuts it after ``slow`` seconds
is silent                                cuts it after ``silent`` seconds; TCP notices a host that is gone
makes hundreds of connections            has at most MOST_GREETING of them without a proof, and cuts the oldest one of
                                         the address that has most: who proves itself in time keeps its place
is let in, again and again               keeps MEMBERS_PLACES of MOST_PEERS for users with the right *daemon*; any other
                                         user has at most MOST_OF_A_USER
=======================================  ======================================================================

Peers that have proved themselves and others are counted apart, so no number of connections without a key takes a place
from who has one. Connections wait in the kernel's queue while the loop is busy, and are accepted in their order.

A server that stops takes no further connection and no further message, waits for the replies under way, and closes all
connections. Cutting a peer at any time is safe: it asks again, or learns from the durable log whether its request was
carried out.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Final, Generic

from kainite.base.address import Address
from kainite.base.end_listening import end_listening
from kainite.base.errors import SettingsError
from kainite.base.logs import event
from kainite.observe.meter import SILENT, Meter
from kainite.peers.accepted import AcceptedPeer, AcceptingTerms
from kainite.peers.byte_budget import ByteBudget
from kainite.peers.connection.codec import M
from kainite.peers.connection.core import ConnectionState, Limits
from kainite.peers.connection.introduction import Door
from kainite.peers.refusals import Refusals
from kainite.peers.rights import DAEMON
from kainite.peers.service import PeerService

_logger = logging.getLogger(__name__)

MOST_PEERS: Final = 1_000
MEMBERS_PLACES: Final = 500
MOST_OF_A_USER: Final = 250
MOST_GREETING: Final = 256
"""So many that who connects amid a flood is proved before as many others have come after it."""

BACKLOG: Final = 1024

LOOK_EVERY_S: Final = 1.0
"""Seconds between two looks for peers that take too long."""


@contextlib.asynccontextmanager
async def serving(
    service: PeerService[M],
    listen: Address,
    *,
    door: Door,
    tls: Callable[[], ssl.SSLContext | None] = lambda: None,
    meter: Meter = SILENT,
    budget: ByteBudget | None = None,
    limits: Limits | None = None,
    key: str = "logListen",
) -> AsyncIterator[LogServer[M]]:
    """Serves peers while entered; at the end, sends the replies under way and closes all connections.

    Args:
        service: answers the peers' messages.
        listen: the address to listen on; port 0 means any free port.
        door: decides who is let in.
        tls: returns the accepting side's TLS context at the time of a connection; None means that nothing is encrypted.
        meter: counts the peers that are refused.
        budget: the bytes that the messages of all peers may have.
        limits: bounds on a peer's messages and times.
        key: the settings' key of the address to listen on, for the error.

    Raises:
        SettingsError: this process cannot listen on the address.
    """
    loop = asyncio.get_running_loop()
    refusals = Refusals(meter, loop.time)
    server = LogServer(service, tls, door, limits or Limits(), budget or ByteBudget(), refusals)
    try:
        listening = await loop.create_server(
            lambda: AcceptedPeer(server.terms), listen.host, listen.port, backlog=BACKLOG
        )
    except OSError as error:
        raise SettingsError(
            f"{key}: cannot listen on {listen}: {error.strerror or error}; several processes of one host need a"
            " port each (port 0 takes any that is free)"
        ) from error
    server.address = Address(listen.host, listening.sockets[0].getsockname()[1])
    looking = asyncio.create_task(server.look(), name="log service peers")
    event(_logger, logging.INFO, "log service listens", address=server.address, key=key, tls=tls() is not None)
    try:
        yield server
    finally:
        looking.cancel()
        try:
            await end_listening(listening)
        finally:
            await server.stop()


class LogServer(Generic[M]):
    """The peers of a listening service."""

    def __init__(
        self,
        service: PeerService[M],
        tls: Callable[[], ssl.SSLContext | None],
        door: Door,
        limits: Limits,
        budget: ByteBudget,
        refusals: Refusals,
    ) -> None:
        self.terms = AcceptingTerms(service, tls, door, limits, budget, refusals, self.admit, self.let_in, self.forget)
        self.address = Address("", 0)
        """The address on which the server listens."""
        self._peers: dict[AcceptedPeer[M], None] = {}  # all, oldest first
        self._greeting: dict[str, dict[AcceptedPeer[M], None]] = {}  # those without a proof, by host
        self._users: Counter[str] = Counter()  # how many are let in, by user
        self._stopped = False

    @property
    def peers(self) -> int:
        """Returns how many peers have proved themselves and are connected."""
        return sum(peer.state is ConnectionState.OPEN for peer in self._peers)

    @property
    def connections(self) -> int:
        """Returns how many connections there are, with and without a proof."""
        return len(self._peers)

    def admit(self, peer: AcceptedPeer[M]) -> bool:
        """Returns whether a new connection may stay; may cut another one without a proof to make room."""
        if self._stopped:
            return False
        if sum(map(len, self._greeting.values())) >= MOST_GREETING:
            crowd = max(self._greeting.values(), key=len)
            next(iter(crowd)).cut("too many connections that have not proved themselves")
        self._peers[peer] = None
        self._greeting.setdefault(peer.host, {})[peer] = None
        return True

    def let_in(self, peer: AcceptedPeer[M]) -> str | None:
        """Counts a peer that has proved itself; returns why it may not stay, or None if it may."""
        self._leave_greeting(peer)
        user, all_of_them = peer.guest.user, self._users.total()
        if all_of_them >= MOST_PEERS:
            return f"{MOST_PEERS} peers are connected"
        if DAEMON not in peer.guest.rights:
            if self._users[user] >= MOST_OF_A_USER:
                return f"{MOST_OF_A_USER} peers of user {user} are connected"
            if all_of_them >= MOST_PEERS - MEMBERS_PLACES:
                return f"{MEMBERS_PLACES} places are kept for daemons"
        self._users[user] += 1
        peer.counted = True
        return None

    def forget(self, peer: AcceptedPeer[M]) -> None:
        self._peers.pop(peer, None)
        self._leave_greeting(peer)
        if peer.counted:
            peer.counted = False
            self._users[peer.guest.user] -= 1
            if not self._users[peer.guest.user]:
                del self._users[peer.guest.user]

    def _leave_greeting(self, peer: AcceptedPeer[M]) -> None:
        crowd = self._greeting.get(peer.host)
        if crowd is not None:
            crowd.pop(peer, None)
            if not crowd:
                del self._greeting[peer.host]

    async def look(self) -> None:
        """Looks for peers that take too long or are revoked, again and again, and cuts them; runs until cancelled."""
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
