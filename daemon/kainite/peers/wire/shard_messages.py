"""The messages of version 6: how the daemons of an application append to a log that one of them owns.

A client joins, then asks; the owner answers each request under the request's number. Each frame of the owner carries
its generation. Numbers are the connection's own.

======  ========================  ===========  ==================================================================
code    message                   sent by      says
======  ========================  ===========  ==================================================================
32      :class:`Join`             client       which log partition and which stream it means
33      :class:`Joined`           owner        it may ask; how many bytes of appends may be unanswered (*credit*)
34      :class:`Elsewhere`        anybody      this process does not own the partition; who does, if known
35      :class:`ShardAppend`      client       the fragments of one processRecords call
36      :class:`ShardAppended`    owner        they are durable
37      :class:`ShardRefused`     owner        the log's state forbids the append, and always will
38      :class:`PositionRequest`  client       how far is a shard collected
39      :class:`PositionAnswer`   owner        so far
40      :class:`ReadingRequest`   owner        how far are your shards read; and: I am alive, and why reading waits
41      :class:`ReadingAnswer`    client       so far; and: I am alive
======  ========================  ===========  ==================================================================

An append's fragments are metadata, which the owner reads, and a payload of compressed deltas, which it copies
(:mod:`kainite.peers.sharing.fragments`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import orjson

from kainite.base.errors import LogProtocolError
from kainite.base.position import Position
from kainite.base.value_class import value_class
from kainite.log.format.entry import ReqId
from kainite.peers.wire.fields import FieldReader, FieldWriter
from kainite.peers.wire.layouts import Layout, plain

VERSION: Final = 6
"""The version of the protocol that has these messages."""

MAX_NAME: Final = 1_024
"""The longest name of a partition, stream, worker or shard, bytes."""


@dataclass(frozen=True, slots=True)
class Join:
    """Attributes: log: table and log partition, as ``TABLE/PARTITION``; stream: its name; process: identity of the
    client's, as text; identity: the stream's, which no other one ever has; empty where it is not known."""

    req_id: ReqId
    log: str
    stream: str
    worker: str
    process: str
    identity: str = ""


@dataclass(frozen=True, slots=True)
class Joined:
    req_id: ReqId
    credit: int


@dataclass(frozen=True, slots=True)
class Elsewhere:
    req_id: ReqId
    address: str


@value_class(frozen=True, slots=True)
class ShardAppend:
    """Attributes: first, last: positions of the call's first and last record; fragments, payload: see the module."""

    req_id: ReqId
    shard: str
    first: Position
    last: Position
    fragments: bytes = field(repr=False)
    payload: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """Returns the bytes that count against the credit."""
        return len(self.fragments) + len(self.payload)


@value_class(frozen=True, slots=True)
class ShardAppended:
    req_id: ReqId


@dataclass(frozen=True, slots=True)
class ShardRefused:
    req_id: ReqId
    cause: str


@dataclass(frozen=True, slots=True)
class PositionRequest:
    req_id: ReqId
    shard: str


@dataclass(frozen=True, slots=True)
class PositionAnswer:
    req_id: ReqId
    position: Position | None


@dataclass(frozen=True, slots=True)
class ReadingRequest:
    """Attributes: backlog: why the log takes no more from the shards; empty while it does."""

    req_id: ReqId
    backlog: str


@dataclass(frozen=True, slots=True)
class ReadingAnswer:
    """Attributes: all but ``req_id`` as in :class:`~kainite.log.client.ReadingReport`; no shards: nothing is known.

    A daemon of an earlier release tells no ``tips``, ``arrived`` and ``started``.
    """

    req_id: ReqId
    shards: frozenset[str]
    read: Mapping[str, float]
    tips: Mapping[str, float] = field(default_factory=dict)
    arrived: Mapping[str, int] = field(default_factory=dict)
    started: Mapping[str, int] = field(default_factory=dict)


SharingMessage: TypeAlias = (
    Join
    | Joined
    | Elsewhere
    | ShardAppend
    | ShardAppended
    | ShardRefused
    | PositionRequest
    | PositionAnswer
    | ReadingRequest
    | ReadingAnswer
)


def _name(reader: FieldReader) -> str:
    text = reader.text()
    if text is None or len(text) > MAX_NAME:
        raise LogProtocolError("a message has no name, or too long a name")
    return text


def _write_join(writer: FieldWriter, message: Join) -> None:
    for text in (message.log, message.stream, message.worker, message.process, message.identity):
        writer.text(text)


def _read_join(reader: FieldReader, req_id: ReqId) -> Join:
    return Join(req_id, *(_name(reader) for _ in range(5)))


def _write_position(writer: FieldWriter, position: Position | None) -> None:
    # Sequence numbers of Kinesis have up to 56 digits.
    writer.text(None if position is None else str(position.sequence))
    writer.int64(0 if position is None else position.sub)


def _read_position(reader: FieldReader) -> Position | None:
    text, sub = reader.text(), reader.int64()
    if text is None:
        return None
    if not (0 < len(text) <= 200 and text.isascii() and text.isdigit()) or sub < 0:
        raise LogProtocolError("a message has a position that is no number")
    return Position(int(text), sub)


def _position(reader: FieldReader) -> Position:
    found = _read_position(reader)
    if found is None:
        raise LogProtocolError("an append lacks a position")
    return found


def _write_append(writer: FieldWriter, message: ShardAppend) -> None:
    writer.text(message.shard)
    _write_position(writer, message.first)
    _write_position(writer, message.last)
    writer.optional_bytes(message.fragments)
    writer.optional_bytes(message.payload)


def _read_append(reader: FieldReader, req_id: ReqId) -> ShardAppend:
    shard, first, last = _name(reader), _position(reader), _position(reader)
    return ShardAppend(req_id, shard, first, last, reader.byte_array(), reader.byte_array())


def _write_position_answer(writer: FieldWriter, message: PositionAnswer) -> None:
    _write_position(writer, message.position)


def _write_reading(writer: FieldWriter, message: ReadingAnswer) -> None:
    said = {"shards": sorted(message.shards), "read": dict(message.read)}
    more = {"tips": dict(message.tips), "arrived": dict(message.arrived), "started": dict(message.started)}
    writer.optional_bytes(orjson.dumps({**said, **{name: value for name, value in more.items() if value}}))


def _read_reading(reader: FieldReader, req_id: ReqId) -> ReadingAnswer:
    try:
        said = orjson.loads(reader.byte_array())
        shards, read = said["shards"], said["read"]
        ages, tips = ({str(shard): float(age) for shard, age in told.items()} for told in (read, said.get("tips", {})))
        arrived, started = (
            {str(shard): int(ms) for shard, ms in said.get(name, {}).items()} for name in ("arrived", "started")
        )
        if not all(isinstance(shard, str) for shard in shards):
            raise TypeError("a shard's name is no text")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LogProtocolError(f"a report of what is read cannot be read: {error}") from error
    return ReadingAnswer(req_id, frozenset(shards), ages, tips, arrived, started)


LAYOUTS: Final = (
    Layout(32, Join, _write_join, _read_join),
    Layout(
        33,
        Joined,
        lambda writer, message: writer.int64(message.credit),
        lambda reader, req_id: Joined(req_id, reader.int64()),
    ),
    Layout(
        34,
        Elsewhere,
        lambda writer, message: writer.text(message.address),
        lambda reader, req_id: Elsewhere(req_id, _name(reader)),
    ),
    Layout(35, ShardAppend, _write_append, _read_append),
    plain(36, ShardAppended),
    Layout(
        37,
        ShardRefused,
        lambda writer, message: writer.text(message.cause),
        lambda reader, req_id: ShardRefused(req_id, reader.text() or ""),
    ),
    Layout(
        38,
        PositionRequest,
        lambda writer, message: writer.text(message.shard),
        lambda reader, req_id: PositionRequest(req_id, _name(reader)),
    ),
    Layout(
        39,
        PositionAnswer,
        _write_position_answer,
        lambda reader, req_id: PositionAnswer(req_id, _read_position(reader)),
    ),
    Layout(
        40,
        ReadingRequest,
        lambda writer, message: writer.text(message.backlog),
        lambda reader, req_id: ReadingRequest(req_id, reader.text() or ""),
    ),
    Layout(41, ReadingAnswer, _write_reading, _read_reading),
)
"""For the table of version 6 (:mod:`kainite.peers.wire.versions`)."""
