"""The answers of the health endpoint, by the facts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.observe.check import Check, Level
from kainite.observe.health import TROUBLE, Health, HealthLimits, LogMountState, WorkerFacts, judge, judge_shard
from kainite.observe.shard_status import ShardStatus, Standstill

LIMITS = HealthLimits(hung_after=300, poison_tries=5, unreached_after=60)
AT_WORK = ShardStatus("s-1", "PROCESSING", pid=7, behind_ms=0, last_record=1.0)
WELL = WorkerFacts(leases=1, reached=1.0)


@pytest.mark.parametrize(
    ("status", "health", "why"),
    [
        (AT_WORK, Health.OK, "as they come"),
        (replace(AT_WORK, action="processRecords", silent=299.0), Health.OK, "worked on processRecords for 5 min"),
        (replace(AT_WORK, action="processRecords", silent=300.0), Health.HUNG, "not answered processRecords for 5 min"),
        (replace(AT_WORK, state="INITIALIZING", action="initialize", silent=301.0), Health.HUNG, "initialize"),
        (replace(AT_WORK, last_record=9_999.0), Health.QUIET, "no records for 2.8 h"),
        (replace(AT_WORK, last_record=None), Health.QUIET, "no records yet"),
        (replace(AT_WORK, behind_ms=120_000), Health.BEHIND, "2 min behind"),
        (replace(AT_WORK, behind_ms=120_000, action="processRecords", silent=400.0), Health.HUNG, "7 min"),
        (replace(AT_WORK, failures=5), Health.FAILING, "5 children failed in a row"),
        (ShardStatus("s-1", "BACKING_OFF", failures=4), Health.WAITING, "BACKING_OFF"),
        (ShardStatus("s-1", "BACKING_OFF", failures=5), Health.FAILING, "5 children"),
        (ShardStatus("s-1", "INITIALIZING"), Health.WAITING, "INITIALIZING"),
        (replace(AT_WORK, standstill=Standstill(299.0, "why")), Health.OK, "as they come"),
        (replace(AT_WORK, standstill=Standstill(300.0, "why")), Health.STALLED, "not got on for 5 min: why"),
        (ShardStatus("s-1", "HELD", standstill=Standstill(301.0, "unread")), Health.STALLED, "5 min: unread"),
        (replace(AT_WORK, throttled=299.0), Health.OK, "as they come"),
        (replace(AT_WORK, behind_ms=120_000, throttled=300.0), Health.THROTTLED, "throttled its reading for 5 min"),
    ],
)
def test_a_shard_is_told_apart(status: ShardStatus, health: Health, why: str) -> None:
    judged = judge_shard(status, LIMITS)

    assert judged.health is health
    assert why in judged.why


def test_one_hung_child_among_quiet_shards_is_the_only_problem() -> None:
    hung = ShardStatus("s-2", "PROCESSING", pid=8, action="processRecords", silent=301)
    quiet = replace(AT_WORK, last_record=None)

    verdict = judge([hung, quiet], WELL, LIMITS)

    assert verdict.problems == ("s-2: the child has not answered processRecords for 5 min",)
    assert verdict.ready, "the daemon itself does what it can"
    assert [(shard["shard"], shard["health"]) for shard in verdict.as_json()["shards"]] == [
        ("s-1", "quiet"),
        ("s-2", "hung"),
    ]


@pytest.mark.parametrize(
    ("worker", "ready", "healthy"),
    [
        (WELL, True, True),
        (WorkerFacts(reached=None), False, True),  # it starts
        (WorkerFacts(reached=59.0), True, True),
        (WorkerFacts(reached=60.0), False, False),  # DynamoDB is away
        (WorkerFacts(reached=None, log=LogMountState.WAITING), False, True),  # it stands by
        (replace(WELL, log=LogMountState.MOUNTED), True, True),
        (replace(WELL, stopping=True), False, True),
        (replace(WELL, backlog="reading waits"), True, False),
    ],
)
def test_ready_and_healthy_are_two_questions(worker: WorkerFacts, ready: bool, healthy: bool) -> None:
    verdict = judge([AT_WORK], worker, LIMITS)

    assert (verdict.ready, verdict.healthy) == (ready, healthy)


def test_a_problem_has_the_last_line_of_the_childs_standard_error() -> None:
    hung = ShardStatus("s", "PROCESSING", pid=8, action="processRecords", silent=301, stderr="connecting to ledger")
    (problem,) = judge([hung], WELL, LIMITS).problems
    assert problem == "s: the child has not answered processRecords for 5 min; its last line: connecting to ledger"


seconds = st.none() | st.floats(min_value=0, max_value=1e6)


@given(
    st.builds(
        ShardStatus,
        st.text(min_size=1),
        st.sampled_from(["INITIALIZING", "PROCESSING", "BACKING_OFF", "LEASE_LOST"]),
        st.none() | st.integers(1, 2**22),
        st.sampled_from([None, "initialize", "processRecords"]),
        seconds,
        st.none() | st.integers(0, 10**9),
        seconds,
        st.integers(0, 100),
    )
)
def test_a_problem_is_reported_for_trouble_and_for_nothing_else(status: ShardStatus) -> None:
    verdict = judge([status], WELL, LIMITS)

    assert verdict.healthy == (verdict.shards[0].health not in TROUBLE)
    if status.action is None:
        assert verdict.shards[0].health is not Health.HUNG, "a child that was asked nothing cannot hang"


def test_trouble_with_units_is_a_problem_and_has_its_check() -> None:
    checks = (Check("failed units", Level.DEGRADED, "1 unit failed", "retry it"), Check("applying", Level.OK, "all"))

    report = judge([AT_WORK], replace(WELL, checks=checks), LIMITS)

    assert (report.healthy, report.ready, report.problems) == (False, True, ("1 unit failed",))
    told = report.as_json()
    assert told["verdict"] == "degraded"
    assert [check["level"] for check in told["checks"]] == ["degraded", "ok"]


def test_the_backlog_is_one_problem_though_a_check_tells_of_it_too() -> None:
    full = Check("room in the log", Level.BROKEN, "reading waits")
    report = judge([], replace(WELL, backlog="reading waits", checks=(full,)), LIMITS)
    assert report.problems == ("reading waits",)
    assert report.as_json()["verdict"] == "broken"


def test_the_last_words_of_a_child_are_told() -> None:
    assert judge([replace(AT_WORK, stderr="boom")], WELL, LIMITS).as_json()["shards"][0]["stderr"] == "boom"


def test_certificates_that_end_or_cannot_be_read_are_a_problem_and_the_daemon_stays_ready() -> None:
    verdict = judge([], replace(WELL, access="the certificate ends"), LIMITS)
    assert verdict.problems == ("the certificate ends",)
    assert verdict.ready
