"""The protocol of the peers, version 1: how daemons, the apply job and commands talk to the log's owner.

A peer begins with :class:`Join`, :class:`Follow` or :class:`RowRequest`, which says what it wants; the owner answers
each request under the request's number. Each message of the owner carries its generation; numbers are the
connection's own. The body of a frame is one message: a msgpack array of its tag and its fields.

=========================  ===========  ==================================================================
message                    sent by      says
=========================  ===========  ==================================================================
:class:`Join`              member       which log partition and which stream it means
:class:`Joined`            owner        it may ask; how many bytes of appends may be unanswered (*credit*)
:class:`Elsewhere`         anybody      this process does not own the partition; who does, if known
:class:`RequestRefused`    owner        the log's state forbids a request, and always will
:class:`ShardStart`        member       since when a shard is read that is not read from its beginning
:class:`ShardAppend`       member       the fragments of one processRecords call
:class:`Appended`          owner        the start, or the fragments, are durable
:class:`PositionRequest`   member       how far is a shard collected
:class:`PositionAnswer`    owner        so far
:class:`ReadingRequest`    owner        how far are your shards read; and: I am alive, and why reading waits
:class:`ReadingAnswer`     member       so far; and: I am alive
:class:`Follow`            follower     which log; what it has of it; how many bytes may be under way
:class:`FeedBatch`         owner        a durable batch
:class:`FeedUpTo`          owner        each entry below an id is durable, and was sent or is not going to be
:class:`FeedTaken`         follower     entries are folded, and so many bytes may be sent again
:class:`OutcomesAt`        follower     the outcomes partition has durable entries up to an id
:class:`RowRequest`        anybody      which log; a table, and the primary key of a row, values as text
:class:`RowAnswer`         owner        the units that touch the row, in log order; and how many there are
=========================  ===========  ==================================================================

The protocol is told from Waltz's by the magic of its Hello (:mod:`kainite.peers.connection.frames`), and has a port of
its own. What a field may hold is its type: each number, name and list is bounded there, and msgspec refuses what is
outside. An append's fragments are bytes here: the owner decodes them only when the log has room for them
(:mod:`kainite.peers.fragments`).
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

from kainite.base.errors import LogProtocolError
from kainite.base.position import Position
from kainite.peers.connection.core import Limits
from kainite.peers.connection.frames import PEERS_HELLO

MAX_FRAME: Final = 320 * 2**20
"""The longest message, bytes: a payload that compression does not shorten, and its metadata."""

MAX_APPEND: Final = MAX_FRAME - 64 * 2**10
"""Most bytes of an append's metadata and payload together; the rest of its frame are positions and names."""

MAX_NUMBER: Final = 2**31 - 1
"""Requests of a connection are numbered from 1 up to this, and then from 1 again."""

OWNER_LIMITS: Final = Limits(body=MAX_FRAME, frame=300.0, silent=5.0)
"""What a client lets the log's owner take: an owner says something every second."""

CLIENT_LIMITS: Final = Limits(
    body=MAX_FRAME, request=10.0, first=64 * 2**10, frame=300.0, silent=15.0, messages=100_000, bytes=2 * MAX_FRAME
)
"""What the log's owner lets a client take: a client answers or says that it is alive every second. Members ask for
positions beside appends that wait for room, so the bounds on what is under way are wide: the credit that a member is
given is narrower (:mod:`kainite.peers.sharing.member_session`)."""

Natural: TypeAlias = Annotated[int, Meta(ge=0)]
"""A whole number from 0; msgpack has none beyond 2⁶⁴."""

Number: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
Name: TypeAlias = Annotated[str, Meta(max_length=1_024)]
Text: TypeAlias = Annotated[str, Meta(max_length=1 << 20)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0)]
Shards: TypeAlias = Annotated[frozenset[Name], Meta(max_length=100_000)]
Key: TypeAlias = Annotated[dict[Name, Text], Meta(max_length=1_000)]


class SentPosition(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A :class:`~kainite.base.position.Position`; sequence numbers of Kinesis have up to 56 digits."""

    sequence: Annotated[str, Meta(pattern=r"\A[0-9]{1,200}\Z")]
    sub: Natural

    @classmethod
    def of(cls, position: Position) -> SentPosition:
        return cls(str(position.sequence), position.sub)

    @property
    def position(self) -> Position:
        return Position(int(self.sequence), self.sub)


class PeerMessage(Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """Holds what all messages have: the sender's generation as far as it knows one, and the request's number."""

    generation: Natural
    number: Number


class Join(PeerMessage, frozen=True):
    """Attributes: log: table and log partition, as ``TABLE/PARTITION``; stream: its name; process: identity of the
    member's, as text; identity: the stream's, which no other one ever has; empty where it is not known."""

    log: Name
    stream: Name
    worker: Name
    process: Name
    identity: Name = ""


class Joined(PeerMessage, frozen=True):
    credit: Natural


class Elsewhere(PeerMessage, frozen=True):
    address: Name


class RequestRefused(PeerMessage, frozen=True):
    cause: str


class ShardStart(PeerMessage, frozen=True):
    """Attributes: as the arguments of :meth:`~kainite.log.client.LogClient.begin`."""

    shard: Name
    started_ms: Natural


class ShardAppend(PeerMessage, frozen=True):
    """Attributes: first, last: positions of the call's first and last record; fragments, payload: see the module."""

    shard: Name
    first: SentPosition
    last: SentPosition
    fragments: memoryview
    payload: memoryview

    @property
    def size(self) -> int:
        """Returns the bytes that count against the credit."""
        return len(self.fragments) + len(self.payload)


class Appended(PeerMessage, frozen=True):
    pass


class PositionRequest(PeerMessage, frozen=True):
    shard: Name


class PositionAnswer(PeerMessage, frozen=True):
    place: SentPosition | None


class ReadingRequest(PeerMessage, frozen=True):
    """Attributes: backlog: why the log takes no more from the shards; empty while it does."""

    backlog: str


class ReadingAnswer(PeerMessage, frozen=True):
    """Attributes: as in :class:`~kainite.log.client.ReadingReport`; no shards: nothing is known."""

    shards: Shards
    read: dict[Name, Seconds]
    tips: dict[Name, Seconds] = {}
    arrived: dict[Name, Natural] = {}
    started: dict[Name, Natural] = {}


class Follow(PeerMessage, frozen=True):
    """Attributes: log: table and log partition, as ``TABLE/PARTITION``; name: the follower's; next_id: the first entry
    that it does not have; credit: bytes; payload: the deltas of a batch come along where they have at most so many
    bytes; outcomes: it announces outcomes."""

    log: Name
    name: Name
    next_id: Natural
    credit: Natural
    payload: Natural
    outcomes: bool


class FeedBatch(PeerMessage, frozen=True):
    """Attributes: index, payload: as the log's format has them; no payload where it is too large."""

    index: bytes
    payload: bytes | None

    @property
    def size(self) -> int:
        """Returns the bytes that count against the credit."""
        return len(self.index) + len(self.payload or b"")


class FeedUpTo(PeerMessage, frozen=True):
    next_id: Natural


class FeedTaken(PeerMessage, frozen=True):
    """Attributes: next_id: the first entry that the follower has not folded; size: bytes of credit that come back."""

    next_id: Natural
    size: Natural


class OutcomesAt(PeerMessage, frozen=True):
    last_id: Annotated[int, Meta(ge=-1)]


class RowRequest(PeerMessage, frozen=True):
    """Attributes: log: table and log partition, as ``TABLE/PARTITION``; table, key: the row's."""

    log: Name
    table: Name
    key: Key


class Holder(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A unit that touches a row; its fields are those of :class:`~kainite.log.views.row_holders.Toucher`."""

    id: Natural
    uow: str
    status: str
    instance: int | None
    waits_for: Natural | None
    cause: str | None


class RowAnswer(PeerMessage, frozen=True):
    """Attributes: count: how many units touch the row, of which ``units`` has the first ones."""

    units: tuple[Holder, ...]
    count: Natural


Message: TypeAlias = (
    Join
    | Joined
    | Elsewhere
    | RequestRefused
    | ShardStart
    | ShardAppend
    | Appended
    | PositionRequest
    | PositionAnswer
    | ReadingRequest
    | ReadingAnswer
    | Follow
    | FeedBatch
    | FeedUpTo
    | FeedTaken
    | OutcomesAt
    | RowRequest
    | RowAnswer
)

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Message)


class PeersCodec:
    """Implements :class:`~kainite.peers.connection.codec.Codec` for the peers' protocol."""

    hello = PEERS_HELLO
    name = "protocol of the log's peers"
    port = (
        "this port is for the daemons and the apply job of the application; programs connect to the port of"
        " logApplicationsListen"
    )
    versions = (1,)

    def encode(self, version: int, message: Message) -> bytes:
        return _ENCODER.encode(message)

    def decode(self, version: int, body: bytes) -> Message:
        try:
            message: Message = _DECODER.decode(body)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise LogProtocolError(f"a message of the {self.name} cannot be read: {error}") from error
        return message


PEERS: Final = PeersCodec()
