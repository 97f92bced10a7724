"""Decodes the events of MariaDB's and MySQL's binlog, but for those of tables and rows: bytes to values, no I/O.

Sources: MySQL Internals manual, *Replication Protocol*; MariaDB's knowledge base, *Replication Protocol*. An event is a
header of 19 bytes, a body, and a checksum where the server writes them. Whatever needs another reading than the manuals
say raises :class:`~kainite.base.errors.SourceError`.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from kainite.base.errors import SourceError

HEADER: Final = struct.Struct("<IBIIIH")
_CHECKSUM: Final = 4
_ARTIFICIAL: Final = 0x20
_IGNORABLE: Final = 0x80
_MARIADB_GTID: Final = struct.Struct("<QIB")
_STANDALONE: Final = 1
_COMPRESSED: Final = 0x80


class Kind(IntEnum):
    """The kinds of events that matter; those above 160 are MariaDB's own."""

    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    APPEND_BLOCK = 9
    DELETE_FILE = 11
    RAND = 13
    USER_VAR = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    WRITE_ROWS_1 = 23
    UPDATE_ROWS_1 = 24
    DELETE_ROWS_1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    ROWS_QUERY = 29
    WRITE_ROWS_2 = 30
    UPDATE_ROWS_2 = 31
    DELETE_ROWS_2 = 32
    GTID_MYSQL = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_2 = 41
    GTID_TAGGED = 42
    ANNOTATE_ROWS = 160
    BINLOG_CHECKPOINT = 161
    GTID_MARIADB = 162
    GTID_LIST = 163
    START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    WRITE_ROWS_COMPRESSED_1 = 166
    UPDATE_ROWS_COMPRESSED_1 = 167
    DELETE_ROWS_COMPRESSED_1 = 168
    WRITE_ROWS_COMPRESSED_2 = 169
    UPDATE_ROWS_COMPRESSED_2 = 170
    DELETE_ROWS_COMPRESSED_2 = 171


IDLE: Final = frozenset({
    Kind.STOP, Kind.INTVAR, Kind.RAND, Kind.USER_VAR, Kind.FORMAT_DESCRIPTION, Kind.ROTATE, Kind.HEARTBEAT,
    Kind.HEARTBEAT_2, Kind.ROWS_QUERY, Kind.PREVIOUS_GTIDS, Kind.ANNOTATE_ROWS, Kind.BINLOG_CHECKPOINT, Kind.GTID_LIST,
    Kind.START_ENCRYPTION, Kind.APPEND_BLOCK, Kind.DELETE_FILE, Kind.BEGIN_LOAD_QUERY,
})  # fmt: skip
"""Events that change no row, and begin or end no transaction."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event.

    Attributes:
        kind: a :class:`Kind`, or the number of a kind that is not known.
        time: when the statement began that wrote it, seconds since the epoch.
        server_id: of the server that wrote it.
        size: bytes in the binlog file.
        end: the lower 32 bits of the position behind it in the file.
        artificial: whether it does not stand in the file, and the server made it for the reader.
        ignorable: whether a reader that does not know the kind may pass it over.
        body: what stands between the header and the checksum.
    """

    kind: int
    time: int
    server_id: int
    size: int
    end: int
    artificial: bool
    ignorable: bool
    body: bytes


@dataclass(frozen=True, slots=True)
class Query:
    """A statement that was logged as a text: one that begins or ends a transaction, DDL, or a change of rows.

    Attributes:
        database: the session's; the statement's names without a database mean it.
        text: the statement.
    """

    database: str
    text: str


def decode_event(data: bytes, *, checksums: bool) -> Event:
    """Decodes an event.

    Args:
        data: the event's bytes.
        checksums: whether events end with a CRC-32, which is verified.
    """
    if len(data) < HEADER.size + (_CHECKSUM if checksums else 0):
        raise SourceError(f"binlog: an event of {len(data)} bytes")
    time, kind, server_id, size, end, flags = HEADER.unpack_from(data)
    if size != len(data):
        raise SourceError(f"binlog: an event of {len(data)} bytes says that it has {size}")
    last = len(data)
    if checksums:
        last -= _CHECKSUM
        if zlib.crc32(memoryview(data)[:last]) != int.from_bytes(data[last:], "little"):
            raise SourceError("binlog: the checksum of an event is wrong")
    artificial = bool(flags & _ARTIFICIAL) or end == 0
    return Event(kind, time, server_id, size, end, artificial, bool(flags & _IGNORABLE), data[HEADER.size : last])


def writes_checksums(data: bytes) -> bool:
    """Returns whether the events of a file have checksums, by its format description's bytes."""
    if len(data) < HEADER.size + 57 + _CHECKSUM + 1:
        raise SourceError("binlog: a format description that is too short")
    return data[-_CHECKSUM - 1] == 1


def rotated_to(body: bytes) -> tuple[str, int]:
    """Returns the file and the position that a rotate event names."""
    if len(body) < 9:
        raise SourceError("binlog: a rotate event without a file")
    return body[8:].rstrip(b"\0").decode("utf-8", "surrogateescape"), int.from_bytes(body[:8], "little")


def query_of(body: bytes, *, compressed: bool = False) -> Query:
    """Decodes a statement; its texts are in the character set of its session, which is UTF-8 but in old programs."""
    if len(body) < 13:
        raise SourceError("binlog: a query event that is too short")
    schema = 13 + int.from_bytes(body[11:13], "little")
    text = schema + body[8] + 1
    if text > len(body):
        raise SourceError("binlog: a query event whose lengths exceed it")
    statement = uncompressed(body[text:]) if compressed else body[text:]
    return Query(body[schema : text - 1].decode("utf-8", "replace"), _decoded(statement))


def uncompressed(data: bytes) -> bytes:
    """Returns what MariaDB has compressed (``log_bin_compress``): a length, and zlib's bytes."""
    length = data[0] & 7 if data else 0
    if not data or not data[0] & _COMPRESSED or data[0] & 0x70 or len(data) < 1 + length:
        raise SourceError("binlog: an event that is compressed in an unknown way")
    size = int.from_bytes(data[1 : 1 + length], "big")
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(data[1 + length :], size + 1)
    except zlib.error as error:
        raise SourceError(f"binlog: a compressed event cannot be read: {error}") from None
    if len(found) != size:
        raise SourceError("binlog: a compressed event has another length than it says")
    return found


def gtid_of(event: Event) -> str | None:
    """Returns the GTID that begins a transaction, as the server spells it; None where it is anonymous."""
    body = event.body
    match event.kind:
        case Kind.GTID_MARIADB if len(body) >= _MARIADB_GTID.size:
            sequence, domain, _ = _MARIADB_GTID.unpack_from(body)
            return f"{domain}-{event.server_id}-{sequence}"
        case Kind.GTID_MYSQL if len(body) >= 25:
            raw = body[1:17].hex()
            uuid = "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:]))
            return f"{uuid}:{int.from_bytes(body[17:25], 'little')}"
        case Kind.ANONYMOUS_GTID:
            return None
    raise SourceError("binlog: a GTID event that is too short")


def stands_alone(event: Event) -> bool:
    """Returns whether MariaDB's GTID event is of one statement without an end of its own."""
    return event.kind == Kind.GTID_MARIADB and bool(event.body[12] & _STANDALONE)


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("cp1252", "replace")
