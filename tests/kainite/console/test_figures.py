"""The figures of the charts: what was applied, and the bound of the ring."""

from __future__ import annotations

from kainite.console.figures import MOST_TIMES, SLOT_S, SLOTS, FigureRing
from kainite.log.state.summary import DurableMark, LogSummary
from kainite.log.views.followed_units import AppliedUnit

NOW = 1_700_000_000_000


def test_rates_and_latencies_are_those_of_the_units_own_times() -> None:
    figures = FigureRing()
    begin = NOW - 2 * SLOT_S * 1000
    figures.note_applied([AppliedUnit(begin + number, number / 100) for number in range(100)], NOW)
    slot = figures.series(NOW)[-3]
    assert (slot.rate, slot.p50, slot.p99) == (10.0, 0.5, 0.98)
    assert figures.rate(NOW - SLOT_S * 1000) == 10.0
    assert figures.series(NOW)[-2].p50 is None


def test_backlog_and_failures_are_those_of_a_moment() -> None:
    figures = FigureRing()
    figures.note_summary(LogSummary(NOW, 1, DurableMark(0, 0, 0), in_progress=4, delayed=2, failed=3, blocked=5))
    assert [(slot.waiting, slot.failed) for slot in figures.series(NOW)[-2:]] == [(None, None), (6, 8)]


def test_what_is_read_anew_is_not_counted_twice() -> None:
    figures = FigureRing()
    for _ in range(2):
        figures.forget_applied()
        figures.note_applied([AppliedUnit(NOW, 1.0)], NOW)
    assert figures.series(NOW)[-1].rate == 1 / SLOT_S


def test_the_ring_is_bounded_in_time_and_in_latencies() -> None:
    figures = FigureRing()
    figures.note_applied([AppliedUnit(NOW - SLOTS * SLOT_S * 1000, 1.0), AppliedUnit(NOW + 60_000, None)], NOW)
    assert [slot.rate for slot in figures.series(NOW) if slot.rate] == [1 / SLOT_S], "a clock ahead counts as now"
    figures.note_applied([AppliedUnit(NOW, 1.0)] * (MOST_TIMES + 10) + [AppliedUnit(NOW, 9.0)] * MOST_TIMES, NOW)
    assert figures.series(NOW)[-1].p50 == 9.0
    later = NOW + 2 * SLOTS * SLOT_S * 1000
    figures.note_applied([], later)
    assert not any(slot.rate for slot in figures.series(NOW))
