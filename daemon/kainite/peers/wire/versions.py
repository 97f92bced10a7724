"""The versions of the protocol: which messages each has, and in which layout.

A new version is a new table in :data:`VERSIONS`; both sides name its number in their Hello
(:mod:`kainite.peers.wire.hello`), and speak it when both do.

=======  =========================================================================================
version  brought
=======  =========================================================================================
0        mount, append with write locks, feed, data, flush, marks
1        read locks; the check of the store
2        append locks; assignments, and preferred partitions
3        the answer to a mount is a state
4        the health of partitions
6        Kainite's own: daemons append to a log that one of them owns, and the apply job follows it. Version 5 was the
         same with other metadata and payloads in an append, and without a feed; this release does not speak it
=======  =========================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.peers.wire import feed_messages, layouts, row_messages, shard_messages
from kainite.peers.wire.fields import FieldReader, FieldWriter
from kainite.peers.wire.frames import MESSAGE, encode_frame
from kainite.peers.wire.layouts import Layout, Message


@dataclass(frozen=True, slots=True)
class Table:
    """The messages of one version, by message type and by class."""

    by_code: Mapping[int, Layout]
    by_kind: Mapping[type[Any], Layout]


def table(*own: Layout, base: Table | None = None) -> Table:
    """Returns the messages of ``base`` with ``own`` added, or put in the place of those of the same type."""
    by_code = {**(base.by_code if base else {}), **{layout.code: layout for layout in own}}
    return Table(by_code, {layout.kind: layout for layout in by_code.values()})


_V0: Final = table(
    layouts.MOUNT_REQUEST,
    layouts.MOUNT_READY,
    layouts.append_request(lock_kinds=1),
    layouts.FEED_REQUEST,
    layouts.FEED_DATA,
    layouts.FEED_SUSPENDED,
    layouts.DATA_REQUEST,
    layouts.DATA_RESPONSE,
    layouts.FLUSH_REQUEST,
    layouts.FLUSH_RESPONSE,
    layouts.LOCK_FAILURE,
    layouts.MARK_REQUEST,
    layouts.MARK_RESPONSE,
)
_V1: Final = table(
    layouts.append_request(lock_kinds=2),
    layouts.STORAGE_REQUEST,
    layouts.STORAGE_RESPONSE,
    base=_V0,
)
_V2: Final = table(
    layouts.append_request(lock_kinds=3),
    layouts.ASSIGNMENT_REQUEST,
    layouts.ASSIGNMENT_RESPONSE,
    layouts.PREFER_REQUEST,
    layouts.PREFER_RESPONSE,
    layouts.UNPREFER_REQUEST,
    layouts.UNPREFER_RESPONSE,
    base=_V1,
)
_V3: Final = table(layouts.MOUNT_STATE, base=_V2)
_V4: Final = table(layouts.HEALTH_REQUEST, layouts.HEALTH_RESPONSE, base=_V3)

_V6: Final = table(*shard_messages.LAYOUTS, *feed_messages.LAYOUTS, *row_messages.LAYOUTS, base=_V4)

VERSIONS: Final[Mapping[int, Table]] = {0: _V0, 1: _V1, 2: _V2, 3: _V3, 4: _V4, 6: _V6}


def encode_message(version: int, message: Message) -> bytes:
    """Returns a message as a frame.

    Raises:
        LogRequestError: the version has no such message, or cannot say what is in it.
    """
    layout = VERSIONS[version].by_kind.get(type(message))
    if layout is None:
        raise LogRequestError(
            f"version {version} of the log's protocol has no {type(message).__name__}: upgrade the peer"
        )
    writer = FieldWriter()
    writer.byte(layout.code)
    writer.req_id(message.req_id)
    layout.write(writer, message)
    return encode_frame(MESSAGE, version, writer.body())


def decode_message(version: int, body: bytes) -> Message:
    """Returns the message in a frame's body, which is not empty.

    Raises:
        LogProtocolError: the body holds no message of the version, or more than one.
    """
    reader = FieldReader(body)
    code = reader.byte()
    layout = VERSIONS[version].by_code.get(code)
    if layout is None:
        raise LogProtocolError(f"version {version} of the log's protocol has no message of type {code}")
    message = layout.read(reader, reader.req_id())
    reader.finish()
    return message
