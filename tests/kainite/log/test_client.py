"""A report on reading gets older on its way."""

from __future__ import annotations

from kainite.log.client import ReadingReport


def test_ages_grow_and_times_stay() -> None:
    report = ReadingReport(frozenset({"s"}), {"s": 1.0}, {"s": 2.0}, {"s": 7})
    assert report.aged(0.5) == ReadingReport(frozenset({"s"}), {"s": 1.5}, {"s": 2.5}, {"s": 7})
