"""The extraction's status: what makes it unhealthy, and what its metrics say."""

from __future__ import annotations

import pytest

from kainite.extract.offsets.place import SourceLag
from kainite.extract.output.sink import Totals
from kainite.extract.status import ExtractReport, ExtractStatus
from kainite.observe import metric
from kainite.observe.meter import Meter
from kainite.observe.metric import Metric


class Collected:
    """Keeps what was observed."""

    def __init__(self) -> None:
        self.seen: list[tuple[Metric, float]] = []

    def observe(self, metric: Metric, value: float, shard: str | None) -> None:
        self.seen.append((metric, value))

    def last(self, wanted: Metric) -> float | None:
        return next((value for one, value in reversed(self.seen) if one is wanted), None)


class World:
    """A status with clocks that a test sets."""

    def __init__(self, quiet_limit: float | None = 100.0) -> None:
        self.now = 0.0
        self.totals = Totals()
        self.collected = Collected()
        self.waiting = 0
        self.status = ExtractStatus(
            self.totals, lambda: self.waiting, quiet_limit, Meter(self.collected), lambda: self.now, lambda: 1000.0
        )

    @property
    def report(self) -> ExtractReport:
        return self.status.report()


def test_it_is_ready_when_the_stream_is_open_and_healthy_from_the_start() -> None:
    world = World()
    assert not world.report.ready
    assert world.report.healthy
    world.status.opened()
    assert world.report.ready


def test_an_extractor_that_fails_is_named_until_it_answers_again() -> None:
    world = World()
    world.status.opened()
    world.status.failed("exit status 3")
    world.status.failed("exit status 4")
    assert not world.report.ready
    assert world.report.problems == ("the extractor has failed 2 times in a row: exit status 4",)
    world.status.answered(None)
    assert world.report.healthy


def test_an_extractor_that_waits_for_its_source_is_a_problem_and_no_failure() -> None:
    world = World()
    world.status.opened()
    world.status.away("exit status 75")
    assert not world.report.ready
    assert world.report.problems == ("the extractor waits for its source: exit status 75",)
    assert world.collected.last(metric.EXTRACT_FAILURES) is None
    world.status.answered(None)
    assert world.report.healthy


@pytest.mark.parametrize(("limit", "healthy"), [(100.0, False), (None, True)])
def test_an_extractor_that_stands_still_is_a_problem_where_silence_is_a_sign(
    limit: float | None, healthy: bool
) -> None:
    world = World(limit)
    world.now = 101.0
    assert world.report.healthy is healthy
    world.status.heard()
    assert world.report.healthy


def test_gauges_and_the_counter_of_records_are_sampled() -> None:
    world = World()
    world.totals.records, world.waiting, world.now = 7, 42, 5.0
    world.status.answered(SourceLag(commit_time=990 * 10**9, held_bytes=16, left_bytes=9))
    world.now = 8.0
    world.status.sample()
    world.totals.records = 10
    world.status.sample()

    counted = [value for one, value in world.collected.seen if one is metric.EXTRACT_RECORDS]
    assert counted == [7, 3]
    assert world.collected.last(metric.EXTRACT_QUIET) == 3000.0
    assert world.collected.last(metric.EXTRACT_WAITING_BYTES) == 42
    assert world.collected.last(metric.EXTRACT_NEWEST_COMMIT_AGE) == 10_000.0
    assert world.collected.last(metric.EXTRACT_HELD_BYTES) == 16
    assert world.collected.last(metric.EXTRACT_LEFT_BYTES) == 9


def test_what_the_extractor_does_not_say_is_not_observed() -> None:
    world = World()
    world.status.answered(SourceLag())
    world.status.sample()

    assert world.collected.last(metric.EXTRACT_NEWEST_COMMIT_AGE) is None
    assert world.collected.last(metric.EXTRACT_HELD_BYTES) is None


def test_the_report_says_what_the_source_holds() -> None:
    world = World()
    world.status.answered(SourceLag(held_bytes=16))

    assert world.report.as_json()["source"] == {"heldBytes": 16}
    assert world.report.as_json()["problems"] == []
