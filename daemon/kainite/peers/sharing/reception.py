"""Receives peers at a process that may own the log: a peer's first message decides which session serves the peer.

=========  ==================================================  ====================================================
phase      waits for                                           then
=========  ==================================================  ====================================================
greeting   Join, Follow or RowRequest, each with its right     says where the owner is, if it is not here
loading    the log's state, if this process is mounting it     keeps the connection alive
open       requests (:mod:`~kainite.peers.sharing.member_session`, or :mod:`kainite.peers.feed.session`)
                                                               says where the owner is when it ends here
answered   nothing: a RowRequest was answered                  the connection ends
=========  ==================================================  ====================================================

A log collects one stream, and refuses a member of a stream with another name. Among streams of one name, only the
identity tells which stream is meant, and a process may not know it: ``kainite log serve`` never asks, a daemon's role
    may not allow the question.
So the identity is compared with the one that the log has (:meth:`~kainite.owner.owner.LogOwner.collect_from`),
which outlives owners. If the log has no identity yet, the owner durably notes that of the first member that knows one,
before this member may append. A member that knows none counts as a member of the log's stream.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Protocol, TypeAlias

from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.base.logs import event
from kainite.base.time_limit import time_limit
from kainite.base.waiting import side_by_side
from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.owner.owner import LogOwner
from kainite.peers.feed.session import FeedSession
from kainite.peers.messages import PEERS, Elsewhere, Follow, Join, Message, RequestRefused, RowRequest
from kainite.peers.rights import DAEMON, FOLLOW, OPERATE
from kainite.peers.rows.answering import row_answer
from kainite.peers.service import Peer
from kainite.peers.sharing.conversation import MemberName
from kainite.peers.sharing.lease_holders import HolderCheck
from kainite.peers.sharing.member_session import MemberSession
from kainite.uow.current_catalogue import CurrentCatalogue

ANSWER_S: Final = 10.0
"""Seconds after which the question who holds a row gets no answer: the peer has read the log instead by then."""

KEEP_ALIVE_S: Final = 0.1
"""Seconds between two frames that say that this process lives, and still loads the log's state."""

_logger = logging.getLogger(__name__)

_RIGHTS: Final[Mapping[type, str]] = {Join: DAEMON, Follow: FOLLOW, RowRequest: OPERATE}

Rest: TypeAlias = Coroutine[Any, Any, None] | None


class Whereabouts(Protocol):
    """Where the log's owner is, as far as this process knows."""

    @property
    def owner(self) -> LogOwner | None:
        """Returns the log's owner, if it is here and serves."""

    @property
    def catalogue(self) -> CurrentCatalogue | None:
        """Returns the target's tables; None where this process does not know them."""

    @property
    def is_claiming(self) -> bool:
        """Returns whether this process is about to own the log."""

    def elsewhere(self) -> str:
        """Returns the address of the log's owner in another process; empty when the address is not known."""


class Reception:
    """Implements :class:`~kainite.peers.service.PeerService`: the peers of one process.

    Args:
        name: this process's identity, and the log that it means.
        where: tells where the owner is.
        clock: returns seconds since boot.
        meter: takes how far followers are behind, and counts requests without a right.
        holders: tells who holds the shards' leases.
    """

    codec = PEERS

    def __init__(
        self, name: MemberName, where: Whereabouts, clock: Callable[[], float], meter: Meter, holders: HolderCheck
    ) -> None:
        self._name = name
        self._where = where
        self._clock = clock
        self._meter = meter
        self._holders = holders
        self._sessions: dict[Peer[Message], MemberSession | FeedSession] = {}

    @property
    def members(self) -> dict[str, str]:
        """Returns the worker ids of the members that have joined here, each with the identity of its process."""
        sessions = [session for session in self._sessions.values() if isinstance(session, MemberSession)]
        return {session.join.worker: session.join.process for session in sessions}

    @property
    def followers(self) -> list[FeedSession]:
        """Returns who follows the log here."""
        return [session for session in self._sessions.values() if isinstance(session, FeedSession)]

    @property
    def unanswered(self) -> int:
        """Returns the bytes of the members' appends that are not answered yet."""
        return sum(session.unanswered for session in self._sessions.values() if isinstance(session, MemberSession))

    def feed_lags(self) -> tuple[tuple[str, int], ...]:
        """Returns who follows the log here, and how many durable entries each has not folded."""
        return tuple(sorted((feed.name, feed.lag) for feed in self.followers))

    async def take(self, peer: Peer[Message], message: Message) -> Rest:
        session = self._sessions.get(peer)
        if session is not None:
            return await session.take(message)
        if not isinstance(message, Join | Follow | RowRequest):
            raise LogProtocolError(f"a peer began with {type(message).__name__}")
        if _RIGHTS[type(message)] not in peer.guest.rights:
            return self._without_right(peer, message)
        owner = await self._owner(peer)
        if owner is None:
            return _last(peer, Elsewhere(0, 0, self._where.elsewhere()))
        match message:
            case Join():
                return await self._join(peer, message, owner)
            case Follow():
                return self._follow(peer, message, owner)
            case RowRequest():
                return self._say_who(peer, message, owner)

    def _without_right(self, peer: Peer[Message], message: Join | Follow | RowRequest) -> Rest:
        right = _RIGHTS[type(message)]
        self._meter.observe(metric.LOG_REFUSED)
        event(_logger, logging.WARNING, "log peer without a right", user=peer.guest.user, peer=peer.place, right=right)
        cause = f"user {peer.guest.user} may not do this: its line in the owner's logSecretFile lacks the right {right}"
        return _last(peer, RequestRefused(message.generation, 0, cause))

    def left(self, peer: Peer[Message]) -> None:
        if isinstance(self._sessions.pop(peer, None), FeedSession):
            self._observe_lags()

    async def _owner(self, peer: Peer[Message]) -> LogOwner | None:
        """Returns the log's owner, if it is here or soon will be."""
        while self._where.owner is None and self._where.is_claiming:
            peer.say_alive()
            await asyncio.sleep(KEEP_ALIVE_S)
        return self._where.owner

    async def _join(self, peer: Peer[Message], join: Join, owner: LogOwner) -> Rest:
        if (cause := self._objection(join)) is not None:
            return _last(peer, RequestRefused(owner.generation, 0, cause))
        session = self._sessions[peer] = MemberSession(join, owner, peer, self._clock, self._holders)
        if (cause := await _other_stream(join.identity, owner)) is not None:
            return _last(peer, RequestRefused(owner.generation, 0, cause))
        peer.allow_long()
        event(_logger, logging.INFO, "daemon joined the log", user=peer.guest.user, peer=peer.place, worker=join.worker)
        peer.beside(self._while_owned(peer, owner, session.run))
        return None

    def _objection(self, join: Join) -> str | None:
        """Returns why a member cannot append here; None when it can."""
        name, members = self._name, self.members
        if (join.log, join.stream) != (name.log, name.stream):
            return (
                f"log {name.log} collects stream {name.stream}; worker {join.worker} has log {join.log} and "
                f"stream {join.stream}: give each stream a logPartition of its own"
            )
        # Two processes under one worker id would take each other's leases for their own.
        if join.worker == name.worker or members.get(join.worker, join.process) != join.process:
            return f"another daemon runs under the worker id {join.worker}: give each its own workerId"
        return None

    def _follow(self, peer: Peer[Message], follow: Follow, owner: LogOwner) -> Rest:
        """Sends the log to a follower, until it or the owner ends."""
        if follow.log != self._name.log:
            return _last(peer, RequestRefused(owner.generation, 0, f"log {self._name.log} is here, not {follow.log}"))
        session = self._sessions[peer] = FeedSession(owner, peer, follow, self._observe_lags)
        event(_logger, logging.INFO, "log is followed by a peer", user=peer.guest.user, peer=peer.place,
              follower=follow.name)  # fmt: skip
        peer.beside(self._while_owned(peer, owner, session.send))
        return None

    def _say_who(self, peer: Peer[Message], request: RowRequest, owner: LogOwner) -> Rest:
        catalogue = self._where.catalogue
        if catalogue is None or request.log != self._name.log:
            return _last(peer, Elsewhere(0, 0, ""))
        return _answered(peer, request, owner, catalogue)

    async def _while_owned(
        self, peer: Peer[Message], owner: LogOwner, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        """Works until the connection or the owner ends; says where the owner is when it ends here."""
        async with side_by_side(work(), owner.failed()) as (working, ended):
            await asyncio.wait({working, ended}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            else:
                await peer.send(Elsewhere(0, 0, self._where.elsewhere()))

    def _observe_lags(self) -> None:
        """Tells the meter how far the slowest follower is behind."""
        self._meter.observe(metric.FEED_LAG, max((lag for _, lag in self.feed_lags()), default=0))


async def _last(peer: Peer[Message], message: Message) -> None:
    """Sends the last message of a connection."""
    await peer.send(message)
    peer.hang_up()


async def _answered(peer: Peer[Message], request: RowRequest, owner: LogOwner, catalogue: CurrentCatalogue) -> None:
    async with time_limit(ANSWER_S):
        await _last(peer, await row_answer(request, owner, catalogue))


async def _other_stream(identity: str, owner: LogOwner) -> str | None:
    """Returns why a member of a stream cannot append here; None when it can, and the log has noted the identity."""
    if identity and identity != owner.state.stream:
        try:
            await owner.collect_from(identity)
        except LogRequestError as error:
            return str(error)
    return None
