from __future__ import annotations

import asyncio
import logging

import pytest

from kainite.base.position import Position
from kainite.child.events import Action
from kainite.kinesis.read.record_batch import RecordBatch
from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.observe.metric import Metric
from kainite.worker.shard_metrics import TIMES, ShardMetrics

SHARD = "shardId-0"


class Figures:
    """Keeps all observations."""

    def __init__(self) -> None:
        self.seen: list[tuple[Metric, float, str | None]] = []

    def observe(self, metric: Metric, value: float, shard: str | None) -> None:
        self.seen.append((metric, value, shard))


@pytest.fixture
def figures() -> Figures:
    return Figures()


@pytest.fixture
async def metrics(figures: Figures) -> ShardMetrics:
    return ShardMetrics(SHARD, Meter(figures))


def batch(count: int) -> RecordBatch:
    place = Position(1) if count else None
    return RecordBatch((), count, place, place, 0, None, payload_bytes=10 * count)


@pytest.mark.parametrize("action", list(Action))
async def test_a_call_is_timed_where_its_action_has_a_metric(
    action: Action, metrics: ShardMetrics, figures: Figures
) -> None:
    with metrics.timing(action, None):
        assert not figures.seen
    assert [(seen, shard) for seen, _, shard in figures.seen] == ([(TIMES[action], SHARD)] if action in TIMES else [])
    assert all(0 <= value < 60_000 for _, value, _ in figures.seen)


async def test_a_call_that_fails_is_timed_too(metrics: ShardMetrics, figures: Figures) -> None:
    with pytest.raises(ValueError, match="the reason"), metrics.timing(Action.PROCESS_RECORDS, None):
        raise ValueError("the reason")
    assert [seen for seen, _, _ in figures.seen] == [metric.PROCESS_RECORDS_TIME]


async def test_a_long_call_is_warned_of_once_while_it_runs(
    metrics: ShardMetrics, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    with metrics.timing(Action.PROCESS_RECORDS, 0.001):
        later = asyncio.Event()
        loop.call_later(0.01, later.set)  # due after the warning
        await later.wait()
        assert [record.getMessage() for record in caplog.records] == ["call takes long"]
    with caplog.at_level(logging.WARNING), metrics.timing(Action.PROCESS_RECORDS, 60):
        pass
    assert len(caplog.records) == 1


async def test_a_short_call_is_not_warned_of(metrics: ShardMetrics, caplog: pytest.LogCaptureFixture) -> None:
    with metrics.timing(Action.PROCESS_RECORDS, 0.001):
        pass
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(0.01, later.set)
    await later.wait()
    assert not caplog.records


async def test_records_and_their_bytes_are_counted(metrics: ShardMetrics, figures: Figures) -> None:
    metrics.processed(batch(3))
    assert figures.seen == [(metric.RECORDS_PROCESSED, 3, SHARD), (metric.DATA_BYTES_PROCESSED, 30, SHARD)]


async def test_an_empty_batch_does_not_count_as_records(metrics: ShardMetrics) -> None:
    assert metrics.since_records is None
    metrics.processed(batch(0))
    assert metrics.since_records is None
    metrics.processed(batch(1))
    assert metrics.since_records is not None
    assert metrics.since_records >= 0


async def test_failures_and_rejected_messages_are_counted(metrics: ShardMetrics, figures: Figures) -> None:
    metrics.child_failed()
    metrics.rejected()
    assert figures.seen == [(metric.CHILD_FAILURES, 1, SHARD), (metric.REJECTED_MESSAGES, 1, SHARD)]
