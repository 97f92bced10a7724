"""The items of a comparison as tasks of Spark."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kainite.base.errors import StoppedError
from kainite.capture.postgresql.replication import SourceSlot
from kainite.replicate.ends import ReplicaEnds
from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.spark_items import SparkItems
from kainite_spark.verify.runners import ThreadItems
from kainite_spark.verify.tasks import run_items
from support.comparisons import compared
from support.replica import replica
from support.replicas import LOG, run

TABLES = "CREATE TABLE account (id int PRIMARY KEY, pad text); CREATE TABLE line (id int PRIMARY KEY)"
FILL = (
    "INSERT INTO account SELECT n, repeat('x', 900) FROM generate_series(1, 20000) n",
    "INSERT INTO line SELECT n FROM generate_series(1, 100) n",
)


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(240)
def test_spark_finds_what_threads_find(spark: Any, source: SourceSlot, postgres: str) -> None:
    ends = ReplicaEnds(source, postgres, LOG)
    with replica(source, postgres, TABLES) as made:
        run(source.url, *FILL)
        made.catch_up(2)
        with made.living():
            run(postgres, "DELETE FROM account WHERE id % 4000 = 0", "UPDATE account SET pad = 'y' WHERE id = 7")
            runner = SparkItems(spark.sparkContext, SparkLimits(), threading.Event(), "verify", run_items)
            ours, its = compared(ends, runner), compared(ends, ThreadItems())
    assert [(table.missing, table.changed) for table in ours.tables] == [(5, 1), (0, 0)]
    assert ours.tables == its.tables
    assert sorted(row.key["id"] for row in ours.rows) == sorted(row.key["id"] for row in its.rows)


def test_a_stop_ends_a_comparison(source: SourceSlot, postgres: str) -> None:
    ends = ReplicaEnds(source, postgres, LOG)
    stop = threading.Event()
    with replica(source, postgres, TABLES) as made, made.living(), pytest.raises(StoppedError):
        compared(ends, stop=stop, before=stop.set)
