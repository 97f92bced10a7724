"""Seeks to a timestamp in a shard: finds the checkpoint just before it.

A checkpoint names the last record that is done, so the checkpoint for a timestamp is the record *before* it. It must be
a real record: Kinesis checks the structure of a sequence number, and "one less" is not a valid one. The sentinel
AT_TIMESTAMP cannot be used either: its time is in each worker's settings, not in the lease. Kinesis does not
read backwards. So longer and longer stretches before the timestamp are read until one holds a record. Java
workers understand the result like any other checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kainite.base.checkpoint import TRIM_HORIZON, Checkpoint
from kainite.base.position import Position
from kainite.base.record import RawRecord, arrival_ms, position_of
from kainite.kinesis.named_streams import ReadableShards
from kainite.kinesis.start_position import StartAt
from kainite.leases.administration.shard_reading import MOST_PAGES, pages

STRETCHES_S = tuple(4.0**power for power in range(14))
"""The range of the search into the past: from one second to more than the year that Kinesis keeps records."""

PAGE = 500
"""Records a page. More than one: boto3 may send whole seconds, so records of the same second come first."""


@dataclass(frozen=True, slots=True)
class SeekResult:
    """The checkpoint before a timestamp; ``followed``: the shard holds a record from that time or later."""

    checkpoint: Checkpoint
    followed: bool


def checkpoint_before(stream: ReadableShards, shard_id: str, time: float) -> SeekResult:
    """Finds the last record that came before ``time`` (epoch seconds); the checkpoint is TRIM_HORIZON when there is
    none.

    A stretch with more records than :data:`~kainite.leases.administration.shard_reading.MOST_PAGES` pages gives an
    earlier checkpoint. Then more records are delivered again, and none is left out.

    Raises:
        StreamError: the shard cannot be read.
    """
    since = _records(stream, shard_id, StartAt("AT_TIMESTAMP", timestamp=time), PAGE)
    first = next((position_of(record) for record in since if not _before(record, time)), None)
    followed = first is not None
    oldest = next(_records(stream, shard_id, StartAt("TRIM_HORIZON"), 1), None)
    if oldest is None or position_of(oldest) == first:
        return SeekResult(TRIM_HORIZON, followed)
    for stretch in STRETCHES_S:
        start = StartAt("AT_TIMESTAMP", timestamp=max(0.0, time - stretch))
        last = _last_before(_records(stream, shard_id, start, PAGE), first, time)
        if last is not None:
            return SeekResult(Checkpoint.at(last), followed)
    return SeekResult(TRIM_HORIZON, followed)


def _last_before(records: Iterator[RawRecord], first: Position | None, time: float) -> Position | None:
    last = None
    for record in records:
        here = position_of(record)
        if (first is not None and here >= first) or not _before(record, time):
            break
        last = here
    return last


def _before(record: RawRecord, time: float) -> bool:
    arrived = arrival_ms(record)
    return arrived is not None and arrived < time * 1000


def _records(stream: ReadableShards, shard_id: str, start: StartAt, limit: int) -> Iterator[RawRecord]:
    for page in pages(stream, shard_id, start, limit, MOST_PAGES):
        yield from page.records
