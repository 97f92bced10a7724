"""Spark's settings for a master, and the errors of a Spark that does not start."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kainite_spark.driver.session import configuration

PROGRAM = """
from kainite_spark.driver.session import spark_context
with spark_context("local[1]", "test"):
    pass
"""

WITHOUT_JVM = """
import os, signal, types
from kainite.base.errors import SparkUnavailableError
from kainite_spark.driver.runner import SparkRunner
from kainite_spark.driver.session import spark_context

with spark_context("local[1]", "test") as context:
    settings = types.SimpleNamespace(run="r", options=types.SimpleNamespace(suited=lambda **_: None))
    runner = SparkRunner(context, settings)
    os.kill(context._gateway.proc.pid, signal.SIGKILL)
    for _ in range(2):
        assert runner.parallelism == 1
        try:
            batch = dict(slices=[1], instances=1, shuffled=False, fence=None, alone=False, in_order=True)
            runner.run(types.SimpleNamespace(**batch))
        except SparkUnavailableError as error:
            print("told:", error)
"""


LEFT_EARLY = """
import sys
from kainite_spark.driver.session import spark_starting

with spark_starting("local[1]", "test"):
    pass
print("left")
"""

TWICE = """
from kainite.base.errors import SparkUnavailableError
from kainite_spark.driver.session import spark_context

for master in ("local[1]", "local[none]", "local[1]"):
    try:
        with spark_context(master, "test") as context:
            print(context.parallelize([1, 2], 2).sum())
    except SparkUnavailableError as error:
        print("told:", error)
"""
"""Starts Spark again in the process of an earlier one, and with a master that Spark refuses."""

WITHOUT_PANDAS = """
import sys
from kainite_spark.driver.session import spark_starting

with spark_starting("local[1]", "test") as started:
    context = started()
    print(context.parallelize([1, 2], 2).map(float).collect(), "pandas" in sys.modules, "numpy" in sys.modules)
"""


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[3]", "local[3,4]"),
        ("local[3,1]", "local[3,1]"),
        ("spark://host:7077", "spark://host:7077"),
        ("k8s://https://host", "k8s://https://host"),
    ],
)
def test_a_local_master_tries_failed_tasks_again(master: str, expected: str) -> None:
    assert configuration(master, "x")["spark.master"] == expected


def test_only_a_local_master_is_bound_to_the_loopback_address() -> None:
    assert configuration("local[2]", "x")["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.driver.bindAddress" not in configuration("spark://host:7077", "x")


def test_without_java_one_line_says_so() -> None:
    environment = {"PATH": "/usr/bin-without-java:/bin", "HOME": "/nonexistent", "JAVA_HOME": "/nonexistent"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=60, check=False
    )

    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "kainite.base.errors.SparkUnavailableError: Java 17 or newer is missing in JAVA_HOME=/nonexistent "
    )
    assert "spark-class" not in done.stderr


@pytest.mark.xdist_group("spark")
def test_a_jvm_that_is_gone_is_told_as_such_each_time() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_JVM], capture_output=True, text=True, timeout=120, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("told: a Spark job failed: ") == 2


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(240)
def test_who_leaves_before_spark_has_started_does_not_wait_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT_EARLY], capture_output=True, text=True, timeout=200, check=False)

    assert (done.returncode, done.stdout.strip()) == (0, "left"), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(240)
def test_a_start_and_a_job_load_no_pandas_into_the_driver() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PANDAS], capture_output=True, text=True, timeout=200, check=False
    )

    assert done.stdout.strip() == "[1.0, 2.0] False False", done.stderr


@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(240)
def test_spark_starts_again_in_one_process_and_leaves_no_jvm_behind() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", TWICE],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip

    first, refused, again = done.stdout.strip().splitlines()
    assert (first, again) == ("3", "3"), done.stderr
    assert refused.startswith("told: Spark does not start with applyMaster=local[none]: ")
    assert "ResourceWarning" not in done.stderr
