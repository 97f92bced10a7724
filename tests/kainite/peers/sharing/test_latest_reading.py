"""The latest report of the reading: it grows older, and is told no more when it is too old."""

from __future__ import annotations

from kainite.log.client import ReadingReport
from kainite.log.collecting.waiting import NEAR_S
from kainite.peers.sharing.latest_reading import LatestReading

REPORT = ReadingReport(frozenset({"s"}), {"s": 7.0})


def test_a_report_grows_older_until_it_is_told_no_more() -> None:
    now = [100.0]
    latest = LatestReading(lambda: now[0])
    assert latest.now() is None
    latest.note(REPORT)
    now[0] += 1.0
    assert latest.now() == ReadingReport(frozenset({"s"}), {"s": 8.0})
    now[0] += NEAR_S
    assert latest.now() is None


def test_readers_read_again_where_a_unit_waits_for_the_report() -> None:
    latest, again = LatestReading(lambda: 100.0), list[None]()
    latest.now(True)
    latest.read_again = lambda: again.append(None)
    latest.now()
    assert again == []
    latest.now(True)
    assert again == [None]


def test_the_source_is_asked_each_time_and_what_it_told_stays() -> None:
    now, told = [100.0], [REPORT, None]
    latest = LatestReading(lambda: now[0])
    latest.source = lambda: told.pop(0)
    assert latest.now() == REPORT
    now[0] += 2.0
    assert latest.now() == ReadingReport(frozenset({"s"}), {"s": 9.0})
