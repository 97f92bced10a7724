"""The archive of Spark's classes, made by a run of Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from pathlib import Path
from kainite_spark.driver.archive_classes import archive_classes
from kainite_spark.driver.class_archive import archive_options, java, spark_home
from kainite_spark.driver.session import spark_context

folder = Path(sys.argv[1])
file = archive_classes(folder)
options = archive_options(spark_home(), java(), folder)
assert options == (f"-XX:SharedArchiveFile={file}",)
# With -Xshare:on a JVM that cannot use the archive does not start.
with spark_context("local[1]", "test", java_options=(*options, "-Xshare:on")) as context:
    print(context.parallelize([1, 2], 2).sum())
"""


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(900)
def test_spark_starts_with_the_archive_that_was_made(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "archives")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
    assert done.stdout.split() == ["3"], done.stderr


def test_without_java_one_line_says_so() -> None:
    command = [sys.executable, "-m", "kainite_spark.driver.archive_classes"]
    environment = {**os.environ, "JAVA_HOME": "/nonexistent"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("kainite: Java 17 or newer is missing in JAVA_HOME=/nonexistent ")
