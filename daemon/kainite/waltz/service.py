"""Answers the messages of applications: versions 0 to 4 of the protocol.

What a client may do with a partition here:

=================  ===========================================  ====================================================
message            where this process owns the partition        where it does not
=================  ===========================================  ====================================================
mount              feed, then READY; CLIENT_AHEAD for a mark    NOT_READY, also for another generation than its
                   that the owner has not
append, feed       after a mount on the same connection, under  the connection is cut: the client mounts anew, where
                   the owner's generation                       the owner is by then
flush, mark        answered                                     the connection is cut
data               answered                                     answered with an error that says so
what asks for the  answered                                     answered
owner itself
=================  ===========================================  ====================================================

No message is dropped in silence: if the version has no answer for it, the connection ends, and the client's appends
under way fail at its next mount.

A client is identified by its id: of two connections with one id that mount a partition, the connection with the higher
number stays, and the other is cut before the mount is answered. The highest number is remembered when its connection is
gone, for the
last CLIENTS_KEPT clients: what an older connection still sends then is not mounted. So nothing that a client sent
before it mounted is decided after the mount is answered.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from kainite.base.errors import KainiteError, LogProtocolError
from kainite.base.logs import event
from kainite.log.format.entry import ReqId
from kainite.observe import metric
from kainite.observe.meter import SILENT, Meter
from kainite.owner.mount import new_token
from kainite.peers.access import application_user
from kainite.peers.connection.introduction import Key
from kainite.peers.rights import may_use, of_application
from kainite.peers.service import Peer
from kainite.waltz.feed import Feed
from kainite.waltz.partition import ApplicationPartition
from kainite.waltz.wire import messages as m
from kainite.waltz.wire.layouts import WaltzMessage
from kainite.waltz.wire.versions import WALTZ

_logger = logging.getLogger(__name__)

CLIENTS_KEPT: Final = 10_000
Rest = Coroutine[Any, Any, None] | None


@dataclass(slots=True)
class _Mounted:
    """A client's mount of a partition."""

    peer: Peer[WaltzMessage]
    partition: ApplicationPartition
    feed: Feed
    feeding: asyncio.Task[None]


class Applications:
    """Implements :class:`~kainite.peers.service.PeerService` for the partitions that this process owns.

    Args:
        reaches_store: tells whether the store answers; None means that it always does.
        has_tokens: whether HEAD has the key of each partition's programs (:mod:`kainite.peers.access`).
        meter: counts messages without a right.
    """

    codec = WALTZ

    def __init__(
        self,
        reaches_store: Callable[[], Coroutine[Any, Any, bool]] | None = None,
        *,
        has_tokens: bool = True,
        meter: Meter = SILENT,
    ) -> None:
        self._reaches_store = reaches_store
        self._has_tokens = has_tokens
        self._meter = meter
        self._tokens: dict[str, Key] = {}  # by the user that they stand for
        self._partitions: dict[int, ApplicationPartition] = {}
        self._mounts: dict[tuple[int, int], _Mounted] = {}  # by client and partition, as the tables below
        self._newest: OrderedDict[tuple[int, int], int] = OrderedDict()

    def owns(self, number: int, partition: ApplicationPartition) -> None:
        """Serves a partition from now on."""
        self._partitions[number] = partition

    def owns_no_more(self, number: int, why: str) -> None:
        """Cuts the clients of a partition that is not served any more."""
        self._partitions.pop(number, None)
        for (_, mounted), mount in tuple(self._mounts.items()):
            if mounted == number:
                mount.peer.cut(why)

    def new_token(self, number: int) -> str:
        """Returns the token for the next mount of a partition; the one before is worth nothing any more.

        Empty where programs are known otherwise.
        """
        if not self._has_tokens:
            return ""
        token = new_token()
        self._tokens[application_user(number)] = Key(token, frozenset({of_application(number)}))
        return token

    def key_of(self, user: str) -> Key | None:
        """Returns the key of who has read a partition's HEAD."""
        return self._tokens.get(user)

    async def take(self, peer: Peer[WaltzMessage], message: WaltzMessage) -> Rest:
        self._check_right(peer, message)
        match message:
            case m.MountRequest():
                return await self._mount(peer, message)
            case m.AppendRequest():
                return await self._append(peer, message)
            case m.FeedRequest(req_id, mark):
                self._mounted(peer, req_id).feed.give_portion(mark, m.FeedSuspended(req_id))
                return None
            case m.FlushRequest(req_id):
                return self._flush(peer, req_id)
            case m.HighWaterMarkRequest(req_id):
                return peer.send(m.HighWaterMarkResponse(req_id, self._owned(req_id).mark))
            case m.TransactionDataRequest():
                return self._data(peer, message)
        return await self._about_the_owner(peer, message)

    def left(self, peer: Peer[WaltzMessage]) -> None:
        for key, mount in tuple(self._mounts.items()):
            if mount.peer is peer:
                del self._mounts[key]
                mount.feeding.cancel()

    def _check_right(self, peer: Peer[WaltzMessage], message: WaltzMessage) -> None:
        """Refuses a message about a partition that the peer may not use.

        Raises:
            LogProtocolError: the peer's user lacks the right.
        """
        number, user = message.req_id.partition, peer.guest.user
        if not may_use(peer.guest.rights, number):
            self._meter.observe(metric.LOG_REFUSED)
            raise LogProtocolError(f"user {user} lacks the right {of_application(number)} in the owner's logSecretFile")

    def _owned(self, req_id: ReqId) -> ApplicationPartition:
        """Returns the partition that a message names.

        Raises:
            LogProtocolError: this process does not own the partition.
        """
        found = self._partitions.get(req_id.partition)
        if found is None:
            raise LogProtocolError(_not_here(req_id.partition))
        return found

    def _mounted(self, peer: Peer[WaltzMessage], req_id: ReqId) -> _Mounted:
        """Returns the mount under which a client may append and be fed.

        Raises:
            LogProtocolError: the client has no mount on this connection, or names another generation.
        """
        partition = self._owned(req_id)
        mount = self._mounts.get((req_id.client, req_id.partition))
        if mount is None or mount.peer is not peer:
            raise LogProtocolError(f"client {req_id.client} has not mounted partition {req_id.partition} here")
        if req_id.generation != partition.generation:
            raise LogProtocolError(
                f"client {req_id.client} means generation {req_id.generation} of partition {req_id.partition}, which is"
                f" of generation {partition.generation}"
            )
        return mount

    async def _mount(self, peer: Peer[WaltzMessage], request: m.MountRequest) -> Rest:
        req_id = request.req_id
        key = (req_id.client, req_id.partition)
        partition = self._partitions.get(req_id.partition)
        if partition is None or req_id.generation != partition.generation or not self._is_newest(key, request):
            return peer.send(m.MountResponse(req_id, m.MountState.NOT_READY))
        self._supersede(peer, key)
        if request.mark > partition.mark:
            await partition.flush()
        if request.mark > partition.mark:
            return peer.send(m.MountResponse(req_id, m.MountState.CLIENT_AHEAD))
        feed = Feed(peer, partition)
        feeding = peer.beside(feed.run())
        self._mounts[key] = _Mounted(peer, partition, feed, feeding)
        event(_logger, logging.INFO, "program mounted a log partition", user=peer.guest.user, peer=peer.place,
              partition=req_id.partition, client=req_id.client)  # fmt: skip
        mark = await partition.flush()
        feed.give(request.mark, mark, m.MountResponse(req_id, m.MountState.READY))
        return None

    def _is_newest(self, key: tuple[int, int], request: m.MountRequest) -> bool:
        """Returns whether no newer connection of the client has mounted the partition, and remembers this one."""
        if self._newest.get(key, request.connection) > request.connection:
            return False
        self._newest[key] = request.connection
        self._newest.move_to_end(key)
        if len(self._newest) > CLIENTS_KEPT:
            self._newest.popitem(last=False)
        return True

    def _supersede(self, peer: Peer[WaltzMessage], key: tuple[int, int]) -> None:
        """Ends a client's earlier mount; cuts the mount's connection if it is another one, and ignores it."""
        before = self._mounts.pop(key, None)
        if before is None:
            return
        before.feeding.cancel()
        if before.peer is not peer:
            before.peer.cut(f"client {key[0]} has a newer connection")

    async def _append(self, peer: Peer[WaltzMessage], request: m.AppendRequest) -> Rest:
        partition = self._mounted(peer, request.req_id).partition
        decision = await partition.append(request)
        if decision.appended:
            return partition.reached(decision.transaction)
        return self._refuse(peer, partition, m.LockFailure(request.req_id, decision.transaction))

    async def _refuse(self, peer: Peer[WaltzMessage], partition: ApplicationPartition, failure: m.LockFailure) -> None:
        await partition.reached(failure.transaction_id)
        await peer.send(failure)

    async def _flush(self, peer: Peer[WaltzMessage], req_id: ReqId) -> None:
        mark = await self._owned(req_id).flush()
        await peer.send(m.FlushResponse(req_id, mark))

    async def _data(self, peer: Peer[WaltzMessage], request: m.TransactionDataRequest) -> None:
        tid = request.transaction_id
        partition = self._partitions.get(request.req_id.partition)
        if partition is None:
            error = _not_here(request.req_id.partition)
        elif not 0 <= tid <= partition.mark:
            error = f"partition {request.req_id.partition} has no transaction {tid} yet; {partition.mark} is the last"
        else:
            try:
                data = await partition.transactions.data(tid)
            except KainiteError as failed:
                error = str(failed)
            else:
                await peer.send(m.TransactionDataResponse(request.req_id, tid, data))
                return
        await peer.send(m.TransactionDataResponse(request.req_id, tid, None, error))

    async def _about_the_owner(self, peer: Peer[WaltzMessage], message: WaltzMessage) -> Rest:
        req_id, owned = message.req_id, tuple(sorted(self._partitions))
        match message:
            case m.CheckStorageConnectivityRequest():
                return self._check_store(peer, req_id)
            case m.ServerPartitionsAssignmentRequest():
                return peer.send(m.ServerPartitionsAssignmentResponse(req_id, owned))
            case m.AddPreferredPartitionRequest():
                return peer.send(m.AddPreferredPartitionResponse(req_id, False))
            case m.RemovePreferredPartitionRequest():
                return peer.send(m.RemovePreferredPartitionResponse(req_id, False))
            case m.ServerPartitionsHealthStatRequest():
                healthy = tuple((number, True) for number in owned)
                return peer.send(m.ServerPartitionsHealthStatResponse(req_id, healthy))
        raise LogProtocolError(f"a client sends {type(message).__name__}, which only an owner sends")

    async def _check_store(self, peer: Peer[WaltzMessage], req_id: ReqId) -> None:
        reached = self._reaches_store is None or await self._reaches_store()
        await peer.send(m.CheckStorageConnectivityResponse(req_id, (("DynamoDB", reached),)))


def _not_here(number: int) -> str:
    return f"partition {number} has its owner elsewhere: its HEAD says where"
