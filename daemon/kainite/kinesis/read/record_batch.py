"""Batches of records, ready for a child, and the end of a shard.

A GetRecords reply of 10,000 records is several megabytes, and a daemon reads many shards, so a
reply is turned at once into the one line that the child will get, and its parsed form dropped.
The payload's base64 is not decoded, unless it is an aggregate's: the string of the reply is the string of
the line.

A finished line cannot be cut, and need not be. A batch is cut only at the position up to which the serialization log
has collected the shard. That position is known before reading starts, and :func:`make_batches` cuts there before it
renders.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kainite.base.position import Position
from kainite.base.record import Pieces, RawRecord, arrival_ms, payload_bytes, position_of
from kainite.kinesis.aggregation import EVERY_KEY, expand
from kainite.kinesis.shards import HashRange, Shard


class Render(Protocol):
    """Makes the child's line of records, in pieces; the records are so many milliseconds behind the shard's end.

    ``plain`` says that every text of the records is ASCII and needs no escape in JSON.
    """

    def __call__(
        self, records: Sequence[RawRecord], millis_behind_latest: int | None, *, plain: bool = False
    ) -> Pieces: ...


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Records in the order of the shard, as the line that hands them to a child.

    Attributes:
        pieces: the whole line with its end, ASCII only, in pieces; none after :meth:`take_line`.
        count: how many records the batch has.
        first, last: the positions of the first and the last record; None for an empty batch.
        millis_behind_latest: how far the shard's newest record is ahead, milliseconds.
        arrival_ms: when the last record came in, milliseconds since the epoch.
        payload_bytes: the bytes of all payloads together.
    """

    pieces: Pieces
    count: int
    first: Position | None
    last: Position | None
    millis_behind_latest: int | None
    arrival_ms: int | None
    payload_bytes: int = 0

    @property
    def line(self) -> bytes:
        """Returns the whole line."""
        return b"".join(self.pieces)

    @property
    def size(self) -> int:
        """Returns the line's length in bytes."""
        return sum(map(len, self.pieces))

    def take_line(self) -> Pieces:
        """Returns the line and drops it from the batch, because a child may work on the batch for long."""
        pieces = self.pieces
        object.__setattr__(self, "pieces", ())
        return pieces


@dataclass(frozen=True, slots=True)
class ShardEnd:
    """The end of a shard: every record has been handed out; the shards ``children`` continue it."""

    children: tuple[Shard, ...]


def make_batches(
    records: Sequence[RawRecord],
    millis_behind_latest: int | None,
    *,
    after: Position | None = None,
    cut_at: Position | None = None,
    hash_range: HashRange | None = None,
    render: Render,
    plain: bool = False,
) -> tuple[RecordBatch, ...]:
    """Returns the batches of a reply: none, one, or two where ``cut_at`` lies inside.

    Args:
        records: the records of one reply, in order, as Kinesis gave them: aggregates are taken apart here.
        millis_behind_latest: the reply's field of that name.
        after: records up to here are left out, they are processed already.
        cut_at: no batch reaches from one side of this position to the other.
        hash_range: the shard's range of hash keys: an aggregate that reaches beyond it is dropped. None: none is.
        render: makes the child's line.
        plain: whether every text of the records is ASCII and needs no escape in JSON, and none is an aggregate.
    """
    records = records if plain else expand(records, hash_range or EVERY_KEY)
    begin = 0 if after is None else bisect_right(records, after, key=position_of)
    middle = begin if cut_at is None else max(begin, bisect_right(records, cut_at, key=position_of))
    pieces = (records[begin:middle], records[middle:])
    return tuple(make_batch(piece, millis_behind_latest, render, plain=plain) for piece in pieces if piece)


def make_batch(
    records: Sequence[RawRecord], millis_behind_latest: int | None, render: Render, *, plain: bool = False
) -> RecordBatch:
    """Returns one batch, which may be empty."""
    return RecordBatch(
        pieces=render(records, millis_behind_latest, plain=plain),
        count=len(records),
        first=position_of(records[0]) if records else None,
        last=position_of(records[-1]) if records else None,
        millis_behind_latest=millis_behind_latest,
        arrival_ms=arrival_ms(records[-1]) if records else None,
        payload_bytes=payload_bytes(records),
    )
