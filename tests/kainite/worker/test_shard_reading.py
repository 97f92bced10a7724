"""The start of reading, from one child of a shard to the next."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kainite.base.checkpoint import AT_TIMESTAMP, LATEST, TRIM_HORIZON, Checkpoint
from kainite.base.position import Position
from kainite.kinesis.read.prefetch import Bounds
from kainite.kinesis.read.read_ahead import ReadAhead
from kainite.leases.keeper import HeldLease
from kainite.leases.table.lease import Lease
from kainite.settings import StreamSettings
from kainite.worker.shard_reading import ShardReading

CUT = Position(7)


class Source:
    """A source that began to read at 1000.0 and reads nothing."""

    opened_at: float | None = 1000.0
    millis_behind_latest: int | None = 5

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.ahead = ReadAhead("s", Bounds(), self._run, "reads nothing")

    async def _run(self) -> None:
        self.calls.append("start")

    async def close(self) -> None:
        self.calls.append("close")


class Opening:
    """Opens sources, and notes where each begins."""

    def __init__(self) -> None:
        self.begun: list[tuple[Checkpoint, float | None]] = []
        self.sources: list[Source] = []

    def __call__(
        self, shard_id: str, hash_range: Any, start: Checkpoint, settings: StreamSettings, *, cut_at: Position | None
    ) -> Any:
        assert cut_at in (None, CUT)
        self.begun.append((start, settings.initial_timestamp))
        self.sources.append(Source())
        return self.sources[-1]


@pytest.mark.parametrize(
    ("checkpoint", "second_start"),
    [
        (LATEST, (AT_TIMESTAMP, 1000.0)),
        (TRIM_HORIZON, (TRIM_HORIZON, None)),
        (Checkpoint("5"), (Checkpoint("5"), None)),
    ],
)
async def test_a_second_source_begins_where_no_record_is_skipped(
    checkpoint: Checkpoint, second_start: tuple[Checkpoint, float | None]
) -> None:
    opening, reading = Opening(), ShardReading(HeldLease(Lease("s", "w", checkpoint=checkpoint), 0.0))
    for _ in range(2):
        reading.open(opening, StreamSettings("stream"), None)
        await reading.close()
    assert opening.begun == [(checkpoint, None), second_start]


async def test_a_source_is_closed_once_and_reports_only_while_it_is_open() -> None:
    opening, reading = Opening(), ShardReading(HeldLease(Lease("s", "w"), 0.0))
    assert reading.millis_behind_latest is None
    reading.open(opening, StreamSettings("stream"), CUT)
    await asyncio.sleep(0)
    assert reading.millis_behind_latest == 5
    await reading.close()
    await reading.close()
    assert opening.sources[0].calls == ["start", "close"]
    assert reading.millis_behind_latest is None


@pytest.mark.parametrize(
    ("checkpoint", "cut_at", "begun", "starts"),
    [
        (LATEST, None, 7.5, [(AT_TIMESTAMP, 7.5)] * 2),
        (LATEST, CUT, None, [(LATEST, None)] * 2),  # which the source takes for the log's position
        (AT_TIMESTAMP, CUT, 7.5, [(AT_TIMESTAMP, 7.5)] * 2),
        (TRIM_HORIZON, None, None, [(TRIM_HORIZON, None)] * 2),
    ],
)
async def test_the_logs_beginning_takes_the_place_of_latest(
    checkpoint: Checkpoint, cut_at: Position | None, begun: float | None, starts: list[tuple[Checkpoint, float | None]]
) -> None:
    opening, reading = Opening(), ShardReading(HeldLease(Lease("s", "w", checkpoint=checkpoint), 0.0))
    for _ in range(2):
        reading.open(opening, StreamSettings("stream"), cut_at, begun)
        await reading.close()
    assert opening.begun == starts


async def test_a_shard_that_was_read_from_the_logs_beginning_goes_on_where_the_log_is() -> None:
    # The time at which it was opened is later than its position in the log, where it was behind.
    opening, reading = Opening(), ShardReading(HeldLease(Lease("s", "w", checkpoint=LATEST), 0.0))
    reading.open(opening, StreamSettings("stream"), None, 7.5)
    await reading.close()
    reading.open(opening, StreamSettings("stream"), CUT)
    assert opening.begun == [(AT_TIMESTAMP, 7.5), (LATEST, None)]
    await reading.close()
