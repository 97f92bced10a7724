"""Tests when the driver stops waiting for a Spark job, and what it says before."""

from __future__ import annotations

import threading

import pytest

from kainite.base.errors import SparkStalledError, SparkUnavailableError
from kainite_spark.driver.job_watch import JobWatch, SparkLimits
from kainite_spark.driver.runner import advice_on
from kainite_spark.driver.stall import Progress

LIMITS = SparkLimits(stall=60.0, job=600.0, grace=10.0)


class Looked:
    """A watch, and what it told."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.stop = threading.Event()
        self.told: list[str] = []
        self.watch = JobWatch(LIMITS, self.stop, lambda: self.progress, self.told.append)

    def until(self, seconds: float, since: float = 0.0) -> None:
        now = since
        while now < seconds:
            now += 0.5
            self.watch.look(now)


def test_a_job_without_executors_is_told_less_and_less_often_and_then_ends() -> None:
    job = Looked(Progress(0, 0, 0))
    job.until(59.0)
    assert [line.split(" for ")[1].split(":")[0] for line in job.told] == ["5 s", "10 s", "20 s", "40 s"]
    with pytest.raises(SparkStalledError, match="no executors for 60 s"):
        job.until(61.0, 59.0)


def test_a_job_that_runs_ends_at_its_limit_alone() -> None:
    job = Looked(Progress(1, 0, 2))
    job.until(599.0)
    assert job.told == []
    with pytest.raises(SparkUnavailableError, match="applyJobLimitMillis") as found:
        job.until(601.0, 599.0)
    assert not isinstance(found.value, SparkStalledError)


def test_a_stop_leaves_the_job_its_grace() -> None:
    job = Looked(Progress(1, 0, 2))
    job.until(20.0)
    job.stop.set()
    job.until(30.0, 20.0)
    with pytest.raises(SparkUnavailableError, match="given up 10 s after the stop"):
        job.until(31.0, 30.0)


@pytest.mark.parametrize(
    "cause",
    [
        "a Spark job failed: ModuleNotFoundError: No module named 'kainite_spark'",
        'a Spark job failed: java.io.IOException: Cannot run program "/opt/python": error=2',
        "a Spark job failed: [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12",
    ],
)
def test_executors_without_kainite_are_told_what_to_set(cause: str) -> None:
    assert "applyPython" in (advice_on(cause) or "")


def test_any_other_failure_is_no_matter_of_settings() -> None:
    assert advice_on("a Spark job failed: java.lang.OutOfMemoryError: Java heap space") is None
