"""A record as GetRecords has it, payload still base64. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from kainite.base.position import Position

RawRecord: TypeAlias = Mapping[str, Any]
"""Data (base64), PartitionKey, SequenceNumber, ApproximateArrivalTimestamp.

One that was taken out of an aggregate has SubSequenceNumber too.
"""


def position_of(record: RawRecord) -> Position:
    return Position(int(record["SequenceNumber"]), record.get("SubSequenceNumber", 0))


def payload_bytes(records: Iterable[RawRecord]) -> int:
    """Returns the size of all payloads in bytes, computed from their padded base64 without decoding it."""
    payloads = [record.get("Data") or "" for record in records]
    padding = "".join([data[-2:] for data in payloads]).count("=")
    return sum(map(len, payloads)) // 4 * 3 - padding


def arrival_ms(record: RawRecord) -> int | None:
    """Returns the time of arrival in whole milliseconds since the epoch, rounded from Kinesis's fractional seconds."""
    seconds = record.get("ApproximateArrivalTimestamp")
    return None if seconds is None else int(seconds * 1000 + 0.5)
