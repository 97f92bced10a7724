"""Which shards are to be read while some daemons do not know a stream that was added."""

from __future__ import annotations

from kainite.log.collecting.reported_shards import STALE_S, ReportedShards


class Reports:
    """Reports of several daemons, and a clock that shows anything."""

    def __init__(self) -> None:
        self.now = 0.0
        self.awaited: set[str] = set()
        self.reported = ReportedShards(lambda: self.now, lambda: self.awaited)

    def tell(self, *shards: str) -> set[str]:
        return set(self.reported.after(frozenset(shards)))


def test_of_one_stream_a_report_takes_the_place_of_the_one_before() -> None:
    reports = Reports()
    assert reports.tell("s0", "s1") == {"s0", "s1"}
    assert reports.tell("s2") == {"s2"}
    assert reports.tell() == set()


def test_a_stream_that_some_daemon_names_counts_although_others_do_not() -> None:
    reports = Reports()
    assert reports.tell("1:a:1:s0", "1:b:1:s0") == {"1:a:1:s0", "1:b:1:s0"}
    assert reports.tell("1:a:1:s0") == {"1:a:1:s0", "1:b:1:s0"}
    assert reports.tell("1:a:1:s0", "1:b:1:s1") == {"1:a:1:s0", "1:b:1:s1"}, "a split"
    assert reports.tell("1:a:1:s1") == {"1:a:1:s1", "1:b:1:s1"}


def test_an_awaited_stream_counts_before_anybody_names_it_for_however_long() -> None:
    reports = Reports()
    reports.tell("1:a:1:s0")
    reports.awaited = {"1:b:1"}
    assert reports.tell("1:a:1:s0") == {"1:a:1:s0", "1:b:1:?"}
    reports.now += 10 * STALE_S
    assert reports.tell("1:a:1:s0") == {"1:a:1:s0", "1:b:1:?"}
    assert reports.tell("1:a:1:s0", "1:b:1:s0") == {"1:a:1:s0", "1:b:1:s0"}
    assert reports.tell("1:a:1:s0") == {"1:a:1:s0", "1:b:1:s0"}


def test_a_stream_is_leased_when_no_report_comes_any_more_of_a_scan_from_before() -> None:
    reports = Reports()
    reports.awaited = {"1:b:1", "1:c:1"}
    reports.tell("1:a:1:s0", "1:b:1:s0")
    reports.now += STALE_S - 1
    reports.tell("1:a:1:s0", "1:b:1:s1")
    reports.now += 1
    assert not reports.reported.leased(), "the latest report may be of a scan from before"
    reports.tell("1:a:1:s0", "1:b:1:s1")
    assert reports.reported.leased() == {"1:b:1"}, "nobody has named the other one, nor is the first one awaited"


def test_a_stream_that_was_forgotten_and_is_added_again_is_not_taken_for_leased_by_reports_from_before() -> None:
    reports = Reports()
    reports.tell("1:a:1:s0", "1:b:1:s0")
    reports.now += STALE_S - 1
    reports.tell("1:a:1:s0", "1:b:1:s0")
    reports.awaited = {"1:b:1"}
    reports.reported.expect_anew("1:b:1")
    assert not reports.reported.leased()
    assert reports.tell("1:a:1:s0") == {"1:a:1:s0", "1:b:1:?"}
    assert reports.tell("1:a:1:s0", "1:b:1:s0") == {"1:a:1:s0", "1:b:1:s0"}
    reports.now += STALE_S
    assert reports.tell("1:a:1:s0") == {"1:a:1:s0", "1:b:1:?"}, "that report was of a scan from before"
    assert not reports.reported.leased()


def test_a_stream_that_is_read_to_its_end_counts_no_more_after_a_time() -> None:
    reports = Reports()
    reports.tell("1:a:1:s0", "1:b:1:s0")
    reports.now += STALE_S - 1
    assert "1:b:1:s0" in reports.tell("1:a:1:s0")
    reports.now += 1
    assert reports.tell("1:a:1:s0") == {"1:a:1:s0"}
    reports.awaited = {"1:b:1"}
    assert reports.tell("1:a:1:s0") == {"1:a:1:s0", "1:b:1:?"}, "it is added again"
