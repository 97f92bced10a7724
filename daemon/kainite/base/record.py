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
    """How many bytes the payloads are, told by their padded base64 without decoding it."""
    payloads = [record.get("Data") or "" for record in records]
    padding = "".join([data[-2:] for data in payloads]).count("=")
    return sum(map(len, payloads)) // 4 * 3 - padding


def arrival_ms(record: RawRecord) -> int | None:
    """Kinesis's seconds with a fraction as whole milliseconds, rounded as they were meant."""
    seconds = record.get("ApproximateArrivalTimestamp")
    return None if seconds is None else int(seconds * 1000 + 0.5)
