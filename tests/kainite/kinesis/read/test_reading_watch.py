"""When a shard's reading counts as standing still, and as throttled."""

from __future__ import annotations

import pytest

from kainite.kinesis.read.reading_watch import ReadingWatch
from kainite.observe.shard_status import Standstill


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(clock: Clock) -> ReadingWatch:
    watch = ReadingWatch(clock)
    watch.asks()
    return watch


def test_a_reader_that_waits_for_room_does_not_stand_still(clock: Clock) -> None:
    watch = ReadingWatch(clock)
    assert watch.standstill is None
    watch.asks()
    watch.answered(records=True, behind_ms=9_000)
    clock.now += 500
    assert watch.standstill is None
    watch.asks()
    assert watch.standstill == Standstill(0.0, "Kinesis has not answered")


def test_failures_and_further_questions_do_not_begin_the_time_anew(clock: Clock, watch: ReadingWatch) -> None:
    clock.now += 100
    watch.failed(OSError("no route"))
    watch.asks()
    clock.now += 100
    assert watch.standstill == Standstill(200.0, "reading fails: no route")


@pytest.mark.parametrize(
    ("replies", "stands"),
    [
        ([(True, 5_000)], False),
        ([(False, 0)], False),
        ([(False, None)], False),
        ([(False, 5_000)], True),
        ([(False, 5_000), (False, 4_000)], False),
        ([(False, 5_000), (False, 5_000)], True),
        ([(False, 5_000), (False, 6_000)], True),
    ],
)
def test_a_reply_without_records_brings_a_reader_on_only_where_it_comes_nearer(
    clock: Clock, watch: ReadingWatch, replies: list[tuple[bool, int | None]], stands: bool
) -> None:
    for records, behind_ms in replies:
        watch.asks()
        watch.answered(records=records, behind_ms=behind_ms)
    clock.now += 300
    assert (watch.standstill is not None) == stands
    if watch.standstill is not None:
        assert watch.standstill.seconds == 300
        assert "bring no record" in watch.standstill.cause


def test_throttling_lasts_while_no_minute_passes_without_it(clock: Clock, watch: ReadingWatch) -> None:
    for _ in range(5):
        watch.failed(OSError(), throttled=True)
        watch.answered(records=True, behind_ms=None)
        clock.now += 59
    assert watch.throttled == 5 * 59
    clock.now += 2
    assert watch.throttled is None
    watch.failed(OSError(), throttled=True)
    assert watch.throttled == 0
