"""Steps as tasks of Spark's."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest

from kainite.base.errors import SourceError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ledger import LoadState
from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.spark_items import SparkItems
from kainite_spark.load.runner import run_steps
from support.replicas import loading

TABLES = "CREATE TABLE item (id int PRIMARY KEY, name text); CREATE TABLE other (id int PRIMARY KEY)"
FILL = "INSERT INTO item SELECT n, 'x' FROM generate_series(1, 500) n; INSERT INTO other VALUES (1)"


@pytest.mark.xdist_group("spark")
def test_steps_run_as_tasks_and_an_error_of_the_look_ends_the_waiting(
    spark: Any, source: SourceSlot, postgres: str
) -> None:
    runner = SparkItems(spark.sparkContext, SparkLimits(), threading.Event(), "load", run_steps)
    assert runner.parallelism == 2

    def ended() -> None:
        raise SourceError("ended")

    with loading(source, postgres, FILL, both=[TABLES]) as world:
        with psycopg.connect(postgres) as holder:
            holder.execute("LOCK TABLE item IN SHARE MODE")
            with pytest.raises(SourceError, match="ended"):
                world.load(runner, look=ended)
        assert world.load(runner).state is LoadState.LIVE
        assert world.differences() == {}
