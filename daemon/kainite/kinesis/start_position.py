"""Computes the start position of a shard iterator. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, Checkpoint
from kainite.base.errors import SettingsError
from kainite.base.position import Position

IteratorType = Literal["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER", "TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"]


@dataclass(frozen=True, slots=True)
class StartAt:
    """The start position of an iterator: GetShardIterator's arguments."""

    kind: IteratorType
    sequence: str | None = None
    timestamp: float | None = None


def done_before(start: Checkpoint, cut_at: Position | None) -> Position | None:
    """Returns the last record that is not read again: the checkpoint's, or at LATEST the log's, if the log has any."""
    return cut_at if start == LATEST else start.position


def start_at(
    start: Checkpoint,
    fetched: Position | None,
    cut_at: Position | None,
    opened_at: float | None,
    timestamp: float | None,
) -> StartAt:
    """Computes the start position of the next iterator.

    Args:
        start: the shard's checkpoint.
        fetched: the last record fetched by this reader.
        cut_at: how far the serialization log has collected the shard.
        opened_at: when this reader had its first iterator, by Kinesis's clock, epoch seconds.
        timestamp: the time that AT_TIMESTAMP stands for, epoch seconds.

    Raises:
        SettingsError: the checkpoint is AT_TIMESTAMP and there is no timestamp.
    """
    if (done := fetched or done_before(start, cut_at)) is not None:
        # AT, not AFTER: the position may lie inside an aggregated record, and only the record itself shows that the
        # stream still has what comes behind it (kainite.kinesis.read.continuity).
        return StartAt("AT_SEQUENCE_NUMBER", str(done.sequence))
    if start == LATEST:
        return StartAt("LATEST") if opened_at is None else StartAt("AT_TIMESTAMP", timestamp=opened_at)
    if start == AT_TIMESTAMP and timestamp is None:
        raise SettingsError("a lease stands at AT_TIMESTAMP: set initialPositionInStreamExtended (epoch seconds)")
    return StartAt("AT_TIMESTAMP", timestamp=timestamp) if start == AT_TIMESTAMP else StartAt("TRIM_HORIZON")
