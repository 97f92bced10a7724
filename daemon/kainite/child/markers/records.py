"""A batch of Kinesis records as the ``markers`` dialect gets it: bytes with one line a record, made once, read once.

::

    SEQUENCE SUB BASE64\n
    SEQUENCE SUB BASE64 CAUSE\n      left out: reported with the cause, and not sent

A batch is read ahead of its child and kept as bytes (:mod:`kainite.kinesis.read.record_batch`), so the payload
stays base64 until it is sent. Without I/O.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kainite.base.position import Position
from kainite.base.record import Pieces, RawRecord
from kainite.child.events import Span


@dataclass(frozen=True, slots=True)
class RecordMessage:
    """A record's payload; ``cause`` says why the record is left out, None if it is sent."""

    position: Position
    payload: bytes
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Records that are no longer sent, and the cause."""

    span: Span
    cause: str


def render_records(records: Sequence[RawRecord], millis_behind_latest: int | None, *, plain: bool = False) -> Pieces:
    """Renders a batch; returns no bytes for an empty batch. The dialect does not tell how far the shard is behind."""
    lines = (f"{record.sequence} {record.sub or 0} {record.data or ''}\n" for record in records)
    return ("".join(lines).encode("ascii"),)


def read_records(batch: Pieces) -> list[RecordMessage]:
    """Reads the records of a rendered batch and decodes their payloads."""
    return [_record(record) for record in b"".join(batch).splitlines()]


def leave_out(batch: Pieces, left_out: Sequence[LeftOut]) -> Pieces:
    """Adds the cause to each record of a rendered batch that is left out."""
    if not left_out:
        return batch
    return tuple(_with_cause(record, left_out) for record in b"".join(batch).splitlines(keepends=True))


def _record(record: bytes) -> RecordMessage:
    sequence, sub, data, *cause = record.split(b" ", 3)
    position = Position(int(sequence), int(sub))
    return RecordMessage(position, a2b_base64(data), cause[0].decode() if cause else None)


def _with_cause(record: bytes, left_out: Iterable[LeftOut]) -> bytes:
    sequence, sub, _ = record.split(b" ", 2)
    position = Position(int(sequence), int(sub))
    for entry in left_out:
        if entry.span.first <= position <= entry.span.last:
            cause = " ".join(entry.cause.split())
            return b"%b %b\n" % (record.rstrip(b"\n"), cause.encode())
    return record
