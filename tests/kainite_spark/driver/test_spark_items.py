"""A function on items, as tasks of Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kainite.base.errors import SparkUnavailableError
from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.spark_items import SparkItems


def quotients(dividend: int, divisors: Iterator[int]) -> Iterator[float]:
    for divisor in divisors:
        yield dividend / divisor


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(240)
def test_items_are_spread_over_tasks_and_a_failed_task_is_told(spark: Any) -> None:
    items = SparkItems(spark.sparkContext, SparkLimits(), threading.Event(), "a test", quotients)
    assert items.parallelism == 2
    assert sorted(items.run(60, range(1, 61), lambda: None)) == sorted(60 / divisor for divisor in range(1, 61))
    with pytest.raises(SparkUnavailableError, match="a Spark job failed: ZeroDivisionError"):
        items.run(1, [0], lambda: None)


def test_a_session_that_is_stopped_while_workers_start_is_no_error() -> None:
    """Has a context that lacks what it asks the JVM with, as PySpark leaves one that was stopped."""
    stopped: Any = SimpleNamespace(_jsc=None, defaultParallelism=1)
    broken: Any = SimpleNamespace(_jsc=object(), defaultParallelism=1)
    SparkItems(stopped, SparkLimits(), threading.Event(), "a test", quotients).start_workers()
    with pytest.raises(AttributeError):
        SparkItems(broken, SparkLimits(), threading.Event(), "a test", quotients).start_workers()


@pytest.mark.xdist_group("spark")
def test_workers_are_started_beforehand_and_a_stop_ends_the_wait_for_them(spark: Any) -> None:
    stop = threading.Event()
    items = SparkItems(spark.sparkContext, SparkLimits(), stop, "a test", quotients)
    items.begin()
    items.start_workers()
    stop.set()
    items.start_workers()
