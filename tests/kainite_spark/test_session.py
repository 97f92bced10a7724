"""Spark's settings for a master, and what is said when it does not start."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kainite_spark.session import configuration

PROGRAM = """
from kainite_spark.session import spark_context
with spark_context("local[1]", "test"):
    pass
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
        "kainite.errors.SparkUnavailableError: Java 17 or newer is missing in JAVA_HOME=/nonexistent "
    )
    assert "spark-class" not in done.stderr
