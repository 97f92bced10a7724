"""The bytes of a walsender: pgoutput's messages of protocol version 1, and the frames around them. Pure.

Written from PostgreSQL's manual (*Logical Replication Message Formats*, *Streaming Replication Protocol*); shares no
code with what reads them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from simulation.extract_history import KEPT, MOOD, Change, Table, Values, Work

_EPOCH_US: Final = 946_684_800_000_000
_HEARTBEAT: Final = b"kainite.heartbeat"


@dataclass(frozen=True, slots=True)
class Committed:
    """A transaction that has committed: where in the WAL, and when, microseconds since 1970."""

    work: Work
    xid: int
    commit_lsn: int
    end_lsn: int
    commit_us: int

    @property
    def name(self) -> str:
        return f"pg-{self.xid}-{lsn_text(self.commit_lsn)}"

    @property
    def is_unit(self) -> bool:
        return bool(self.work.changes) or self.work.heartbeat


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> int:
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def data(lsn: int, payload: bytes) -> bytes:
    return b"w" + struct.pack(">QQq", lsn, lsn, 0) + payload


def keepalive(sent: int, *, reply: bool) -> bytes:
    return b"k" + struct.pack(">QqB", sent, 0, reply)


def flushed_in(status: bytes) -> int:
    """Returns the LSN that a client's status update says to be flushed."""
    kind, _, flushed = struct.unpack(">cQQ", status[:17])
    assert kind == b"r", status
    return int(flushed)


def messages(one: Committed, described: set[int]) -> Iterator[bytes]:
    """Yields a transaction's messages.

    Args:
        one: the transaction.
        described: the tables that this connection has described; each is, before its first change.
    """
    time = one.commit_us - _EPOCH_US
    yield b"B" + struct.pack(">QqI", one.commit_lsn, time, one.xid)
    for change in one.work.changes:
        if change.table.oid not in described:
            described.add(change.table.oid)
            yield from _described(change.table)
        yield _changed(change)
    if one.work.heartbeat:
        yield b"M" + struct.pack(">BQ", 1, one.commit_lsn) + _HEARTBEAT + b"\0" + struct.pack(">I", 0)
    yield b"C" + struct.pack(">BQQq", 0, one.commit_lsn, one.end_lsn, time)


def _described(table: Table) -> Iterator[bytes]:
    if any(column.type_oid == MOOD for column in table.columns):
        yield b"Y" + struct.pack(">I", MOOD) + b"public\0mood\0"
    head = struct.pack(">I", table.oid) + b"public\0" + table.name.encode() + b"\0" + (b"f" if table.full else b"d")
    columns = [struct.pack(">B", column.key or table.full) + column.name.encode() + b"\0"
               + struct.pack(">Ii", column.type_oid, -1) for column in table.columns]  # fmt: skip
    yield b"R" + head + struct.pack(">H", len(columns)) + b"".join(columns)


def _changed(change: Change) -> bytes:
    oid, before = struct.pack(">I", change.table.oid), b"O" if change.table.full else b"K"
    old = b"" if change.old is None else before + _row(change.old)
    match change.kind:
        case "insert" if change.new is not None:
            return b"I" + oid + b"N" + _row(change.new)
        case "update" if change.new is not None:
            return b"U" + oid + old + b"N" + _row(change.new)
        case "delete":
            return b"D" + oid + old
    return b"T" + struct.pack(">IB", 1, 0) + oid


def _row(values: Values) -> bytes:
    return struct.pack(">H", len(values)) + b"".join(map(_value, values))


def _value(value: object) -> bytes:
    if value is None:
        return b"n"
    if value is KEPT:
        return b"u"
    text = str(value).encode()
    return b"t" + struct.pack(">I", len(text)) + text
