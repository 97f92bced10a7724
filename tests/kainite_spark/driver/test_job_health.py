"""Tests what the apply job says about its health."""

from __future__ import annotations

from kainite.verdict.facts import ReplicaFacts
from kainite_spark.driver.job_health import LATE_S, JobHealth, JobStage


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_job_is_ready_when_it_applies_or_stands_by() -> None:
    health = JobHealth(Clock())
    ready = {}
    for stage in JobStage:
        health.enter(stage)
        ready[stage] = health.report().ready
    assert {stage for stage, is_ready in ready.items() if is_ready} == {JobStage.STANDBY, JobStage.APPLYING}


def test_trouble_is_a_problem_until_a_round_is_completed() -> None:
    health = JobHealth(Clock())
    health.enter(JobStage.APPLYING)
    health.waits_for("the target is away")
    assert health.report().as_json()["problems"] == ["the target is away"]
    assert not health.report().ready
    health.round(failed=0)
    assert health.report().healthy


def test_failed_units_and_a_replica_that_differs_are_problems_and_the_job_is_ready_all_the_same() -> None:
    health = JobHealth(Clock())
    health.enter(JobStage.APPLYING)
    health.round(failed=2)
    told = health.report().as_json()
    assert (told["healthy"], told["ready"], told["failed_units"]) == (False, True, 2)
    assert told["problems"] == ["2 units failed, and hold back what touches their rows"]
    assert told["checks"][0]["remedy"] == "kainite log show -p FILE --status failed"
    health.round(failed=0)
    assert health.report().healthy
    health.replica = ReplicaFacts(verdict="different", passed=False, summary="different: 3 differ", age=30)
    assert health.report().problems == ("the latest comparison, 30 s ago: different: 3 differ",)


def test_certificates_that_end_are_a_problem_beside_others() -> None:
    health = JobHealth(Clock())
    health.enter(JobStage.APPLYING)
    health.also = lambda: "the certificate ends"
    assert health.report().problems == ("the certificate ends",)
    assert health.report().ready
    health.waits_for("the target is away")
    assert health.report().problems == ("the target is away", "the certificate ends")


def test_a_job_that_makes_no_round_has_a_problem_and_a_standby_has_none() -> None:
    clock = Clock()
    health = JobHealth(clock)
    health.enter(JobStage.STANDBY)
    clock.now = 10 * LATE_S
    assert health.report().healthy
    health.enter(JobStage.APPLYING)
    clock.now += LATE_S + 1
    assert not health.report().healthy


def test_a_job_of_one_of_several_targets_says_which() -> None:
    health = JobHealth(Clock(), target="crm")
    health.round(failed=2)
    found = health.report().as_json()
    assert found["target"] == "crm"
    assert "kainite log show -p FILE --target crm --status failed" in str(found["checks"])
    assert "target" not in JobHealth(Clock()).report().as_json()
