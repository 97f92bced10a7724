"""The versions of the protocol: which messages each has, and in which layout.

Both sides name the versions that they speak in their Hello (:mod:`kainite.peers.connection.hello`), and speak the
highest that both name.

=======  ========================================================
version  brought
=======  ========================================================
0        mount, append with write locks, feed, data, flush, marks
1        read locks; the check of the store
2        append locks; assignments, and preferred partitions
3        the answer to a mount is a state
4        the health of partitions
=======  ========================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kainite.base.errors import LogProtocolError, LogRequestError
from kainite.log.format.entry import ReqId
from kainite.peers.connection.fields import FieldReader, FieldWriter
from kainite.peers.connection.frames import WALTZ_HELLO
from kainite.waltz.wire import layouts
from kainite.waltz.wire.layouts import MessageLayout, WaltzMessage


@dataclass(frozen=True, slots=True)
class VersionTable:
    """The messages of one version, by message type and by class."""

    by_code: Mapping[int, MessageLayout]
    by_kind: Mapping[type[Any], MessageLayout]


def table(*own: MessageLayout, base: VersionTable | None = None) -> VersionTable:
    """Returns the messages of ``base`` with ``own`` added, or put in the place of those of the same type."""
    by_code = {**(base.by_code if base else {}), **{layout.code: layout for layout in own}}
    return VersionTable(by_code, {layout.kind: layout for layout in by_code.values()})


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
VERSIONS: Final[Mapping[int, VersionTable]] = {0: _V0, 1: _V1, 2: _V2, 3: _V3, 4: _V4}


class WaltzCodec:
    """Implements :class:`~kainite.peers.connection.codec.Codec` for Waltz's protocol."""

    hello = WALTZ_HELLO
    name = "log's protocol for applications"
    port = (
        "this port is for programs, which speak versions 0 to 4; daemons and the apply job connect to the port of"
        " logListen"
    )
    versions = tuple(VERSIONS)

    def encode(self, version: int, message: WaltzMessage) -> bytes:
        layout = VERSIONS[version].by_kind.get(type(message))
        if layout is None:
            raise LogRequestError(
                f"version {version} of the {self.name} has no {type(message).__name__}: upgrade the peer"
            )
        writer, req_id = FieldWriter(), message.req_id
        writer.byte(layout.code)
        writer.int32s(req_id.client, req_id.generation, req_id.partition, req_id.sequence)
        layout.write(writer, message)
        return writer.body()

    def decode(self, version: int, body: bytes) -> WaltzMessage:
        reader = FieldReader(body)
        code = reader.byte()
        layout = VERSIONS[version].by_code.get(code)
        if layout is None:
            raise LogProtocolError(f"version {version} of the {self.name} has no message of type {code}")
        message = layout.read(reader, ReqId(*reader.int32s(4)))
        reader.finish()
        return message


WALTZ: Final = WaltzCodec()
