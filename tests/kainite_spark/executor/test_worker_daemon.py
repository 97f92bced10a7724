"""The process that Spark's Python workers are forked from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from kainite_spark.executor.worker_daemon import without_zips

LOADED = """
import os, sys
from kainite_spark.executor.worker_daemon import load
load()
print(len(os.listdir("/proc/self/task")), "psycopg" in sys.modules, "pandas" in sys.modules, "pyarrow" in sys.modules)
"""


def test_what_is_loaded_before_the_fork_starts_no_thread() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split() == ["1", "True", "False", "False"], done.stderr


def test_zips_of_the_installed_spark_are_left_out_and_those_of_another_one_count(tmp_path: Path) -> None:
    ours = str(Path(pyspark.__file__).parent / "python/lib/pyspark.zip")
    others = str(tmp_path / "spark/python/lib/pyspark.zip")
    assert without_zips([ours, *sys.path, others]) == [*sys.path, others]


def test_without_an_installed_spark_the_zips_stay(tmp_path: Path) -> None:
    path = [str(tmp_path / "pyspark.zip"), str(tmp_path)]
    assert without_zips(path) == path


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(240)
def test_workers_have_everything_loaded_before_their_first_task() -> None:
    done = subprocess.run([sys.executable, "-c", TASK], capture_output=True, text=True, timeout=200, check=False)
    assert done.stdout.split() == ["True", "True", "True"], done.stderr


TASK = """
from kainite_spark.driver.session import spark_starting

def loaded(_):
    import sys
    yield "psycopg" in sys.modules
    yield "kainite_spark.executor.tasks" in sys.modules
    yield not any(entry.endswith("pyspark.zip") for entry in sys.path)

with spark_starting("local[1]", "test") as started:
    for each in started().parallelize([0], 1).mapPartitions(loaded).collect():
        print(each)
"""
