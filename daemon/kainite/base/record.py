"""A record as GetRecords has it, payload still base64. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from kainite.base.position import Position

Pieces: TypeAlias = tuple[bytes, ...]
"""A text of megabytes for a child: each piece is freed as soon as it is written, and nobody joins them."""

PADDING_SAMPLE: Final = 200
"""Records whose base64 padding is counted; the padding of more is computed from that of so many of them."""


class RawRecord(
    msgspec.Struct,
    frozen=True,
    gc=False,
    rename={
        "sequence": "SequenceNumber",
        "key": "PartitionKey",
        "data": "Data",
        "arrived": "ApproximateArrivalTimestamp",
    },
):
    """A record; msgspec decodes it, in half the time that a dictionary of its fields takes.

    Attributes:
        sequence: the sequence number, in decimal.
        key: the partition key.
        data: the payload's base64; None where Kinesis gives none.
        arrived: the time of arrival, epoch seconds; None where it is not told.
        sub: the sub-sequence number of a record that was taken out of an aggregate; None of others.
    """

    sequence: str
    key: str
    data: str | None = None
    arrived: float | None = None
    sub: int | None = None


def position_of(record: RawRecord) -> Position:
    return Position(int(record.sequence), record.sub or 0)


def has_plain_texts(body: bytes) -> bool:
    """Tells whether every text of a JSON document is ASCII and stands in it without an escape, so needs none."""
    return body.isascii() and b"\\" not in body


def payload_bytes(records: Sequence[RawRecord]) -> int:
    """Returns the size of all payloads in bytes, computed from their padded base64 without decoding it.

    The size is exact for up to :data:`PADDING_SAMPLE` records; of more, it is wrong by at most two bytes a record.
    """
    payloads = [record.data or "" for record in records]
    sample = payloads[:: -(-len(payloads) // PADDING_SAMPLE) or 1]
    padding = "".join([data[-2:] for data in sample]).count("=")
    return sum(map(len, payloads)) // 4 * 3 - padding * len(payloads) // (len(sample) or 1)


def arrival_ms(record: RawRecord) -> int | None:
    """Returns the time of arrival in whole milliseconds since the epoch, rounded from Kinesis's fractional seconds."""
    return rounded_ms(record.arrived)


def rounded_ms(seconds: float | None) -> int | None:
    """Returns seconds as whole milliseconds; None for None."""
    return None if seconds is None else int(seconds * 1000 + 0.5)
