"""Micro-batches that fail in a row: what is tried again, and when the job ends."""

from __future__ import annotations

import threading

import pytest

from kainite.base.errors import KainiteError, SparkStalledError, SparkUnavailableError, TargetFencedError
from kainite_spark.driver.job_health import JobHealth
from kainite_spark.driver.trouble import SPARK_TRIES, MicroBatchTrouble
from kainite_spark.plan.backlog import Backlog
from support.unit_states import unit_state


def begun() -> tuple[MicroBatchTrouble, Backlog]:
    stop = threading.Event()
    stop.set()  # so that no pause takes time
    backlog = Backlog({1: unit_state(1)})
    backlog.add(1)
    return MicroBatchTrouble(JobHealth(), stop), backlog


def test_units_are_told_why_they_wait_from_the_second_failure_on() -> None:
    trouble, backlog = begun()
    trouble.meet(SparkUnavailableError("away"), backlog, [1])
    assert backlog.take_changes() == ()

    trouble.meet(SparkUnavailableError("away"), backlog, [1])
    (told,) = backlog.take_changes()
    assert told.cause is not None
    assert told.cause.endswith(": away")


def test_lost_executors_are_borne_until_they_are_too_many_in_a_row() -> None:
    trouble, backlog = begun()
    for _ in range(SPARK_TRIES - 1):
        trouble.meet(SparkUnavailableError("away"), backlog, [])
    assert trouble.lasts
    trouble.passed()
    assert not trouble.lasts

    for _ in range(SPARK_TRIES - 1):
        trouble.meet(SparkUnavailableError("away"), backlog, [])
    with pytest.raises(SparkUnavailableError):
        trouble.meet(SparkUnavailableError("away"), backlog, [])


@pytest.mark.parametrize("problem", [SparkStalledError("no task runs"), TargetFencedError("taken over")])
def test_what_does_not_pass_ends_the_job_at_once(problem: KainiteError) -> None:
    trouble, backlog = begun()
    with pytest.raises(type(problem)):
        trouble.meet(problem, backlog, [])
