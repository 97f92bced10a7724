"""The messages of version 6 by which the apply job follows the log: batches as they become durable, outcomes as well.

A follower begins with :class:`Follow` in the place of a member's Join. From then on the owner sends; the follower says
what it has taken. Each frame of the owner carries its generation.

======  ======================  ===========  =====================================================================
code    message                 sent by      says
======  ======================  ===========  =====================================================================
42      :class:`Follow`         follower     which log; what it has of it; how many bytes may be under way (*credit*)
43      :class:`FeedBatch`      owner        a durable batch
44      :class:`FeedUpTo`       owner        each entry below an id is durable, and was sent or is not going to be
45      :class:`FeedTaken`      follower     entries are folded, and so many bytes may be sent again
46      :class:`OutcomesAt`     follower     the outcomes partition has durable entries up to an id
======  ======================  ===========  =====================================================================

A follower is answered by :class:`~kainite.peers.wire.shard_messages.Elsewhere` where the log's owner is not here,
and by :class:`~kainite.peers.wire.shard_messages.ShardRefused` where it means another log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kainite.base.errors import LogProtocolError
from kainite.log.format.entry import ReqId
from kainite.peers.wire.fields import FieldReader, FieldWriter
from kainite.peers.wire.layouts import Layout, numbered

MAX_NAME: Final = 1_024
"""The longest name of a log or of a follower, characters."""


@dataclass(frozen=True, slots=True)
class Follow:
    """Attributes: log: table and log partition, as ``TABLE/PARTITION``; name: the follower's; next_id: the first entry
    that it does not have; credit: bytes; payload: the deltas of a batch come along where they have at most so many
    bytes; outcomes: it announces outcomes."""

    req_id: ReqId
    log: str
    name: str
    next_id: int
    credit: int
    payload: int
    outcomes: bool


@dataclass(frozen=True, slots=True)
class FeedBatch:
    """Attributes: index, payload: as the log's format has them; no payload where it is too large."""

    req_id: ReqId
    index: bytes = field(repr=False)
    payload: bytes | None = field(repr=False)

    @property
    def size(self) -> int:
        """Returns the bytes that count against the credit."""
        return len(self.index) + len(self.payload or b"")


@dataclass(frozen=True, slots=True)
class FeedUpTo:
    req_id: ReqId
    next_id: int


@dataclass(frozen=True, slots=True)
class FeedTaken:
    """Attributes: next_id: the first entry that the follower has not folded; size: bytes of credit that come back."""

    req_id: ReqId
    next_id: int
    size: int


@dataclass(frozen=True, slots=True)
class OutcomesAt:
    req_id: ReqId
    last_id: int


FeedMessage: TypeAlias = Follow | FeedBatch | FeedUpTo | FeedTaken | OutcomesAt


def _name(reader: FieldReader) -> str:
    text = reader.text()
    if text is None or len(text) > MAX_NAME:
        raise LogProtocolError("a follower has no name, or too long a name")
    return text


def _count(reader: FieldReader) -> int:
    number = reader.int64()
    if number < 0:
        raise LogProtocolError(f"a follower says {number} where a count is expected")
    return number


def _write_follow(writer: FieldWriter, message: Follow) -> None:
    writer.text(message.log)
    writer.text(message.name)
    writer.int64(message.next_id)
    writer.int64(message.credit)
    writer.int64(message.payload)
    writer.boolean(message.outcomes)


def _read_follow(reader: FieldReader, req_id: ReqId) -> Follow:
    names = _name(reader), _name(reader)
    return Follow(req_id, *names, _count(reader), _count(reader), _count(reader), reader.boolean())


def _write_batch(writer: FieldWriter, message: FeedBatch) -> None:
    writer.optional_bytes(message.index)
    writer.optional_bytes(message.payload)


def _read_batch(reader: FieldReader, req_id: ReqId) -> FeedBatch:
    return FeedBatch(req_id, reader.byte_array(), reader.optional_bytes())


def _write_taken(writer: FieldWriter, message: FeedTaken) -> None:
    writer.int64(message.next_id)
    writer.int64(message.size)


def _read_taken(reader: FieldReader, req_id: ReqId) -> FeedTaken:
    return FeedTaken(req_id, _count(reader), _count(reader))


LAYOUTS: Final = (
    Layout(42, Follow, _write_follow, _read_follow),
    Layout(43, FeedBatch, _write_batch, _read_batch),
    numbered(44, FeedUpTo, "next_id"),
    Layout(45, FeedTaken, _write_taken, _read_taken),
    numbered(46, OutcomesAt, "last_id"),
)
"""For the table of version 6 (:mod:`kainite.peers.wire.versions`)."""
