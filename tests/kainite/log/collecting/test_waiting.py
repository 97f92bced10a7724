"""Time counts only while every shard is read near its tip, and nothing that arrived in time is unread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.log.client import ReadingReport
from kainite.log.collecting.waiting import NEAR_S, SHORTEST_NEAR_S, Waiting, near_of

LIMIT = 600.0
BOTH = frozenset({"s0", "s1"})


class Bench:
    """One open unit, T, two shards, and a clock."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.now = 1_000.0
        self.waiting = Waiting(limit, lambda: self.now)
        self.shards = BOTH

    @property
    def overdue(self) -> bool:
        return bool(self.waiting.overdue({"T"}))

    def read(self, seconds: float, ages: dict[str, float] | None = None) -> bool:
        """Lets time pass, with a report each second; returns whether T is overdue at the end."""
        for _ in range(round(seconds)):
            self.now += 1
            self.waiting.report(ReadingReport(self.shards, dict.fromkeys(self.shards, 1.0) if ages is None else ages))
            self.overdue  # noqa: B018  # asked on a timer
        return self.overdue


def test_a_unit_is_overdue_after_the_limit_near_the_tips_and_the_age_of_the_reports() -> None:
    bench = Bench()
    assert not bench.overdue
    bench.read(1)
    assert not bench.read(LIMIT - 1)
    assert bench.read(2)


def test_nothing_counts_without_reports() -> None:
    bench = Bench()
    assert not bench.overdue
    bench.now += 1_000_000
    assert not bench.overdue


def test_nothing_counts_before_any_shard_is_known() -> None:
    bench = Bench()
    bench.shards = frozenset()
    assert not bench.read(2 * LIMIT)


def test_an_outage_longer_than_the_limit_does_not_count_and_the_wait_goes_on_after_it() -> None:
    bench = Bench()
    bench.read(LIMIT / 2)
    bench.now += 10 * LIMIT
    assert not bench.overdue
    assert not bench.read(LIMIT / 2 - NEAR_S - 10)
    assert bench.read(NEAR_S + 20)


def test_what_arrived_in_an_outage_that_counts_is_read_before_anything_is_overdue() -> None:
    bench = Bench(limit=60.0)
    bench.read(58)
    bench.now += 5  # shorter than what counts as an outage; the records of these seconds are unread
    assert not bench.overdue
    bench.waiting.report(ReadingReport(BOTH, {"s0": 0.0, "s1": 6.0}))
    assert not bench.overdue
    assert bench.read(5)


@pytest.mark.parametrize("ages", [{"s0": 1.0}, {"s0": 1.0, "s1": 3_600.0}], ids=["unread or poisoned", "lagging"])
def test_one_shard_that_is_not_near_its_tip_stops_the_time(ages: dict[str, float]) -> None:
    assert not Bench().read(5 * LIMIT, ages)


def test_catching_up_from_the_trim_horizon_does_not_count() -> None:
    bench = Bench()
    for behind in range(86_400, 0, -240):
        assert not bench.read(1, {"s0": 0.0, "s1": float(behind)})
    assert not bench.read(LIMIT - NEAR_S - 10)
    assert bench.read(NEAR_S + 20)


def test_a_shard_that_appears_stops_the_time_until_it_is_read() -> None:
    bench = Bench()
    bench.read(LIMIT - 5)
    bench.shards = BOTH | {"s2"}
    assert not bench.read(LIMIT, {"s0": 1.0, "s1": 1.0})
    assert bench.read(NEAR_S)


def test_a_shard_that_has_ended_is_not_waited_for() -> None:
    bench = Bench()
    bench.shards = frozenset({"s0"})
    assert bench.read(LIMIT + 3, {"s0": 1.0})


def test_a_host_that_slept_has_not_waited() -> None:
    bench = Bench()
    bench.read(10)
    bench.now += 10 * LIMIT  # and the first thing that happens then is a report
    assert not bench.read(1)


def test_a_report_from_the_future_counts_as_one_of_now() -> None:
    bench = Bench()
    bench.overdue  # noqa: B018
    bench.waiting.report(ReadingReport(BOTH, dict.fromkeys(BOTH, -1e9)))
    bench.now += LIMIT
    assert not bench.overdue


def test_a_unit_that_was_gone_waits_anew() -> None:
    bench = Bench()
    bench.read(LIMIT + 3)
    assert bench.overdue
    assert bench.waiting.overdue(set()) == frozenset()
    assert not bench.overdue


@pytest.mark.parametrize(("limit", "near"), [(600.0, NEAR_S), (120.0, 30.0), (1.0, SHORTEST_NEAR_S)])
def test_near_is_short_against_the_limit_where_it_can_be(limit: float, near: float) -> None:
    assert near_of(limit) == near


@given(st.lists(st.tuples(st.floats(0, 300), st.sampled_from(["s0", "s1", "none"]), st.floats(0, 300)), max_size=60))
def test_never_overdue_before_its_limit_has_passed_and_all_that_arrived_in_it_is_read(
    steps: list[tuple[float, str, float]],
) -> None:
    bench = Bench(limit=100.0)
    bench.overdue  # noqa: B018
    began, read = bench.now, dict.fromkeys(BOTH, 0.0)
    for passed, shard, age in steps:
        bench.now += passed
        if shard in BOTH:
            read[shard] = max(read[shard], bench.now - age)
            bench.waiting.report(ReadingReport(BOTH, {shard: age}))
        if bench.overdue:
            assert min(read.values()) >= began + 100.0


def test_how_far_behind_each_shard_is_that_can_be_read_now() -> None:
    bench = Bench()
    shards = frozenset({"read", "unread", "child"})
    bench.waiting.report(ReadingReport(shards, {"read": 2.0}, waiting=frozenset({"child"})))
    bench.now += 3.0
    assert bench.waiting.behind() == {"read": 5.0, "unread": None}
