"""Codec of the frames around pgoutput messages on a replication connection; no I/O.

Source: PostgreSQL manual, *Streaming Replication Protocol*. The server sends data (``w``) and
keepalives (``k``); the client answers with status updates (``r``). Only a status update lets the
server forget what came before.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TypeAlias

from kainite.base.errors import SourceError
from kainite.capture.postgresql.pgoutput import EPOCH_OFFSET_US, Cursor

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


@dataclass(frozen=True, slots=True)
class Data:
    """One message of the output plugin. ``start_lsn`` is 0 for messages without a place in the WAL."""

    start_lsn: int
    end_lsn: int
    sent_us: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Keepalive:
    """Everything committed up to ``end_lsn`` has been sent."""

    end_lsn: int
    sent_us: int
    reply_requested: bool


Frame: TypeAlias = Data | Keepalive


def decode_frame(data: bytes) -> Frame:
    """Decodes a frame from the server.

    Raises:
        SourceError: the bytes are no frame.
    """
    cursor = Cursor(data)
    kind = cursor.char()
    if kind == "w":
        return Data(cursor.number(8), cursor.number(8), cursor.time(), cursor.rest())
    if kind == "k":
        frame = Keepalive(cursor.number(8), cursor.time(), bool(cursor.number(1)))
        cursor.end()
        return frame
    raise SourceError(f"replication: unknown frame {kind!r} from the server")


def encode_status(written: int, flushed: int, now_us: int) -> bytes:
    """Encodes a status update that asks for a reply, which shows that the server lives.

    Args:
        written: LSN up to which everything was received.
        flushed: LSN up to which everything is safe elsewhere: the server may forget that part.
        now_us: the client's clock, microseconds since the Unix epoch.
    """
    return b"r" + struct.pack(">QQQqB", written, flushed, flushed, now_us - EPOCH_OFFSET_US, 1)


def parse_lsn(text: str) -> int:
    """Parses an LSN such as ``16/B374D848``.

    Raises:
        SourceError: ``text`` is no LSN.
    """
    match = _LSN.fullmatch(text)
    if match is None:
        raise SourceError(f"{text!r} is no LSN; one looks like 16/B374D848")
    high, low = match.groups()
    return int(high, 16) << 32 | int(low, 16)


def format_lsn(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
