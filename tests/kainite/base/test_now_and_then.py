"""A lasting condition is told at once, and then once in so many seconds."""

from __future__ import annotations

from kainite.base.now_and_then import Counted, NowAndThen


def test_the_first_time_is_due_at_once_and_the_next_one_after_the_pause() -> None:
    now = [100.0]
    telling = NowAndThen(60.0, lambda: now[0])
    assert telling.is_due()
    now[0] += 59.9
    assert not telling.is_due()
    now[0] += 0.1
    assert [telling.is_due(), telling.is_due()] == [True, False]


def test_the_first_time_may_be_put_off() -> None:
    now = [0.0]
    telling = NowAndThen(60.0, lambda: now[0], wait=10.0)
    assert not telling.is_due()
    now[0] = 10.0
    assert telling.is_due()


def test_what_happens_often_is_told_at_once_and_then_once_a_minute_with_the_count() -> None:
    now = [0.0]
    counted = Counted(lambda: now[0])
    assert [counted.happened() for _ in range(4)] == [1, 0, 0, 0]
    now[0] = 60.0
    assert [counted.happened(), counted.happened()] == [4, 0]
    now[0] = 300.0
    assert counted.happened() == 2
