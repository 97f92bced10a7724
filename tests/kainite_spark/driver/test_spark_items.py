"""A function on items, as tasks of Spark."""

from __future__ import annotations

import threading
from functools import partial
from operator import add
from typing import Any

import pytest

from kainite.base.errors import SparkUnavailableError
from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.spark_items import SparkItems


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(240)
def test_items_are_spread_over_tasks_and_a_failed_task_is_told(spark: Any) -> None:
    items = SparkItems(spark.sparkContext, SparkLimits(), threading.Event(), "a test")
    assert items.parallelism == 2
    assert sorted(items.run(partial(map, partial(add, 1)), range(100), lambda: None)) == list(range(1, 101))
    with pytest.raises(SparkUnavailableError, match="a Spark job failed: ZeroDivisionError"):
        items.run(partial(map, (1).__truediv__), [0], lambda: None)
