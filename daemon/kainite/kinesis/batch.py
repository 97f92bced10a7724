"""Batches of records, ready for a child, and the end of a shard.

A GetRecords reply of 10,000 records is several megabytes, and a daemon reads many shards, so a
reply is turned at once into the one line that the child will get, and its parsed form dropped.
The payload's base64 is never decoded: the string of the reply is the string of the line.

A finished line cannot be cut any more. It need not be: what a batch may be cut at (the position
that the serialization log has collected) is known before reading starts, and
:func:`make_batches` cuts there before it renders.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from kainite.kinesis.shards import Shard
from kainite.log.entry import Position

RawRecord: TypeAlias = Mapping[str, Any]
"""A record as GetRecords has it: Data (base64), PartitionKey, SequenceNumber, ApproximateArrivalTimestamp."""

Render: TypeAlias = Callable[[Sequence[RawRecord], int | None], bytes]


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Records in the order of the shard, as the line that hands them to a child.

    Attributes:
        line: the whole line with its end, ASCII only.
        count: how many records.
        first, last: where they stand in the shard; None for an empty batch.
        millis_behind_latest: how far the shard's newest record is ahead, milliseconds.
        arrival_ms: when the last record came in, milliseconds since the epoch.
        payload_bytes: of all records together.
    """

    line: bytes
    count: int
    first: Position | None
    last: Position | None
    millis_behind_latest: int | None
    arrival_ms: int | None
    payload_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ShardEnd:
    """Every record of the shard has been given out; ``children`` go on from here."""

    children: tuple[Shard, ...]


def render_process_records(records: Sequence[RawRecord], millis_behind_latest: int | None) -> bytes:
    """The ``processRecords`` line of the json-lines dialect (reference/kcl_multilang.md §1).

    ASCII only: a raw U+2028 ends a line for Node's readline.
    """
    request = {
        "action": "processRecords",
        "records": [
            {
                "data": record.get("Data"),
                "partitionKey": record["PartitionKey"],
                "sequenceNumber": record["SequenceNumber"],
                "approximateArrivalTimestamp": arrival_ms(record),
                "subSequenceNumber": 0,
                "action": "record",
            }
            for record in records
        ],
        "millisBehindLatest": millis_behind_latest,
    }
    line = orjson.dumps(request, option=orjson.OPT_APPEND_NEWLINE)
    return line if line.isascii() else json.dumps(request, separators=(",", ":")).encode() + b"\n"


def make_batches(
    records: Sequence[RawRecord],
    millis_behind_latest: int | None,
    *,
    after: Position | None = None,
    cut_at: Position | None = None,
    render: Render = render_process_records,
) -> tuple[RecordBatch, ...]:
    """Batches of what a reply holds: none, one, or two where ``cut_at`` lies inside.

    Args:
        records: of one reply, in order.
        millis_behind_latest: of that reply.
        after: records up to here are left out, they are processed already.
        cut_at: no batch reaches from one side of this position to the other.
        render: makes the child's line.
    """
    begin = 0 if after is None else bisect_right(records, after, key=position_of)
    middle = begin if cut_at is None else max(begin, bisect_right(records, cut_at, key=position_of))
    pieces = (records[begin:middle], records[middle:])
    return tuple(make_batch(piece, millis_behind_latest, render) for piece in pieces if piece)


def make_batch(records: Sequence[RawRecord], millis_behind_latest: int | None, render: Render) -> RecordBatch:
    """One batch, which may be empty."""
    return RecordBatch(
        line=render(records, millis_behind_latest),
        count=len(records),
        first=position_of(records[0]) if records else None,
        last=position_of(records[-1]) if records else None,
        millis_behind_latest=millis_behind_latest,
        arrival_ms=arrival_ms(records[-1]) if records else None,
        payload_bytes=sum(payload_size(record) for record in records),
    )


def position_of(record: RawRecord) -> Position:
    return Position(int(record["SequenceNumber"]))


def payload_size(record: RawRecord) -> int:
    """Bytes of the payload, told by its padded base64 without decoding it."""
    data: str = record.get("Data") or ""
    return len(data) // 4 * 3 - data[-2:].count("=")


def arrival_ms(record: RawRecord) -> int | None:
    """Kinesis's seconds with a fraction as whole milliseconds, rounded as they were meant."""
    seconds = record.get("ApproximateArrivalTimestamp")
    return None if seconds is None else int(seconds * 1000 + 0.5)
