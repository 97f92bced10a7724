"""The protocol of the peers, version 1: how daemons, the apply job and commands talk to the log's owner.

A peer begins with :class:`Join`, :class:`Follow` or :class:`RowRequest`, which says what it wants; the owner answers
each request under the request's number. Each message of the owner carries its generation; numbers are the
connection's own. The body of a frame is one message: a msgpack array of its tag and its fields.

=========================  ===========  ==================================================================
message                    sent by      says
=========================  ===========  ==================================================================
:class:`Join`              member       which log partition and which stream the member means
:class:`Joined`            owner        the member may ask; how many bytes of its appends may be unanswered (*credit*)
:class:`Elsewhere`         anybody      the sender does not own the partition; the owner's address, if known
:class:`RequestRefused`    owner        the log's state forbids a request, and always will
:class:`BeginRequest`      member       a time that becomes the log's beginning, if the log has none
:class:`BeginStream`       member       the same, of one stream among several
:class:`BeginAnswer`       owner        the log's beginning, which is durable
:class:`AppendBroken`      owner        the owner cannot decide on an append: an error in Kainite itself
:class:`ShardAppend`       member       the fragments of one processRecords call
:class:`Appended`          owner        the fragments are durable
:class:`PositionRequest`   member       the question how far a shard is collected
:class:`PositionAnswer`    owner        the position up to which the shard is collected
:class:`ReadingRequest`    owner        the question how far the member's shards are read; why reading waits
:class:`ReadingAnswer`     member       how far the member's shards are read
:class:`Follow`            follower     which log; which entries the follower has; how many bytes may be under way
:class:`FeedBatch`         owner        a durable batch
:class:`FeedUpTo`          owner        each entry below an id is durable, and was sent or never will be
:class:`FeedTaken`         follower     entries are folded, and so many bytes may be sent again
:class:`OutcomesAt`        follower     the outcomes partition has durable entries up to an id
:class:`RowRequest`        anybody      which log; a table, and the primary key of a row, values as text
:class:`RowAnswer`         owner        the units that touch the row, in log order; and how many there are
=========================  ===========  ==================================================================

The peers' protocol differs from Waltz's by the magic of its Hello (:mod:`kainite.peers.connection.frames`), and has a
port of its own. The type of a field bounds its numbers, names and lists, and msgspec refuses a message with a value
outside of the bounds. An append's fragments are bytes in its message: the owner decodes them only when the log has room
for them (:mod:`kainite.peers.fragments`).
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
"""The length of the longest message in bytes: a payload that compression does not shorten, and its metadata."""

MAX_APPEND: Final = MAX_FRAME - 64 * 2**10
"""The most bytes of an append's metadata and payload together; positions and names take the rest of its frame."""

MAX_NUMBER: Final = 2**31 - 1
"""The requests of a connection are numbered from 1 up to this number, and then from 1 again."""

OWNER_LIMITS: Final = Limits(body=MAX_FRAME, silent=5.0)
"""A client's bounds on the log's owner: an owner says something every second."""

CLIENT_LIMITS: Final = Limits(
    body=MAX_FRAME, request=10.0, first=64 * 2**10, silent=15.0, messages=10_000, bytes=2 * MAX_FRAME
)
"""The owner's bounds on a client: a client answers or says that it is alive every second. Members ask for
positions beside appends that wait for room, so the bounds on what is under way are wide: the credit that a member is
given is narrower (:mod:`kainite.peers.sharing.member_session`)."""

MAX_SECONDS: Final = 1e12

Natural: TypeAlias = Annotated[int, Meta(ge=0)]
"""A whole number from 0; msgpack has none beyond 2⁶⁴."""

Moment: TypeAlias = Annotated[int, Meta(ge=0, le=253_402_300_799_999)]
"""Milliseconds since the epoch, up to the end of the year 9999."""

Number: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]
Name: TypeAlias = Annotated[str, Meta(max_length=1_024)]
Text: TypeAlias = Annotated[str, Meta(max_length=1 << 20)]
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=MAX_SECONDS)]
"""An age. The bounds refuse infinity and NaN: either would stay the best that is known for good."""
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
    """The fields of all messages: the owner's generation as far as the sender knows it, and the request's number."""

    generation: Natural
    number: Number


class Join(PeerMessage, frozen=True):
    """Attributes: log: table and log partition, as ``TABLE/PARTITION``; stream: its name; process: the identity
    of the member's process; identity: the stream's identity, which no other stream ever has, or empty where it
    is not known."""

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


class AppendBroken(PeerMessage, frozen=True):
    cause: str


class BeginRequest(PeerMessage, frozen=True):
    """Attributes: as the arguments of :meth:`~kainite.log.client.LogClient.begin`."""

    at_ms: Moment


class BeginStream(PeerMessage, frozen=True):
    """Attributes: as the arguments of :meth:`~kainite.log.client.LogClient.begin`."""

    at_ms: Moment
    stream: Name


class BeginAnswer(PeerMessage, frozen=True):
    """Attributes: at_ms: the log's beginning, which is durable."""

    at_ms: Moment


class ShardAppend(PeerMessage, frozen=True):
    """Attributes: after: the shard's position in the log as the member knows it; first, last: positions of the call's
    first and last record; fragments, payload: the metadata and the payload of :mod:`kainite.peers.fragments`."""

    shard: Name
    after: SentPosition | None
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
    """Attributes: backlog: why the log takes no more records from the shards; empty while it takes them; hold_ms: as
    :attr:`~kainite.log.client.LogClient.hold_ms`; awaited: whether a unit of work waits for the reading alone."""

    backlog: str
    hold_ms: Natural | None = None
    awaited: bool = False


class ReadingAnswer(PeerMessage, frozen=True):
    """Attributes: as in :class:`~kainite.log.client.ReadingReport`; without shards, the member knows nothing."""

    shards: Shards
    read: dict[Name, Seconds]
    tips: dict[Name, Seconds] = {}
    arrived: dict[Name, Natural] = {}
    waiting: Shards = frozenset()


class Follow(PeerMessage, frozen=True):
    """Attributes: log: table and log partition, as ``TABLE/PARTITION``; name: the follower's name; next_id: the first
    entry that the follower does not have; credit: bytes that may be under way; payload: the most bytes of deltas that
    are sent along with a batch; outcomes: whether the follower announces outcomes."""

    log: Name
    name: Name
    next_id: Natural
    credit: Natural
    payload: Natural
    outcomes: bool


class FeedBatch(PeerMessage, frozen=True):
    """Attributes: index, payload: a batch's two parts, as the log's format has them; a large payload is left out."""

    index: bytes
    payload: bytes | None

    @property
    def size(self) -> int:
        """Returns the bytes that count against the credit."""
        return len(self.index) + len(self.payload or b"")


class FeedUpTo(PeerMessage, frozen=True):
    next_id: Natural


class FeedTaken(PeerMessage, frozen=True):
    """Attributes: next_id: the first entry that the follower has not folded; size: bytes of credit given back."""

    next_id: Natural
    size: Natural


class OutcomesAt(PeerMessage, frozen=True):
    last_id: Annotated[int, Meta(ge=-1)]


class RowRequest(PeerMessage, frozen=True):
    """Attributes: log: table and log partition, as ``TABLE/PARTITION``; table, key: the row's table and primary key."""

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
    """Attributes: count: how many units touch the row; units: the first of them."""

    units: tuple[Holder, ...]
    count: Natural


Message: TypeAlias = (
    Join
    | Joined
    | Elsewhere
    | RequestRefused
    | BeginRequest
    | BeginStream
    | BeginAnswer
    | AppendBroken
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
