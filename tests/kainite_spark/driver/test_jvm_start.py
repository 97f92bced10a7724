"""A JVM of Spark that is started before PySpark is loaded."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest

from kainite.base.errors import SparkUnavailableError
from kainite_spark.driver.jvm_start import JvmStart


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a Spark whose ``spark-submit`` notes its arguments, and ends."""
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "spark-submit"
    script.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\nexit 1\n')
    script.chmod(0o755)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return tmp_path


def test_a_jvm_that_ends_before_it_listens_is_told_and_leaves_nothing(spark: Path) -> None:
    before = dict(os.environ)
    with pytest.raises(SparkUnavailableError, match="Java gateway process exited"):
        JvmStart({"spark.master": "local[1]"}, subprocess.DEVNULL).connect()

    assert (spark / "arguments").read_text() == "--conf spark.master=local[1] pyspark-shell\n"
    assert list((spark / "temporary").iterdir()) == []
    assert dict(os.environ) == before


def test_arguments_in_the_environment_reach_spark(spark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--driver-memory 2g pyspark-shell")
    with pytest.raises(SparkUnavailableError):
        JvmStart({}, subprocess.DEVNULL).connect()

    assert (spark / "arguments").read_text() == "--driver-memory 2g pyspark-shell\n"


def test_a_missing_spark_is_an_error_of_the_system_and_leaves_nothing(spark: Path) -> None:
    (spark / "bin" / "spark-submit").unlink()
    with pytest.raises(OSError, match="spark-submit"):
        JvmStart({}, subprocess.DEVNULL)
    assert list((spark / "temporary").iterdir()) == []


def test_a_jvm_that_ends_when_it_has_told_its_port_is_told(spark: Path) -> None:
    """Shows nobody listens there any more, and its secret stays nowhere."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    (spark / "told").write_bytes(struct.pack(">ii", port, 3) + b"abc")
    script = spark / "bin" / "spark-submit"
    script.write_text(
        f'#!/bin/sh\ncp {spark}/told "$_PYSPARK_DRIVER_CONN_INFO_PATH.new"\n'
        'mv "$_PYSPARK_DRIVER_CONN_INFO_PATH.new" "$_PYSPARK_DRIVER_CONN_INFO_PATH"\n'
    )
    before = dict(os.environ)
    with pytest.raises(SparkUnavailableError, match="Java gateway process"):
        JvmStart({}, subprocess.DEVNULL).connect()

    assert list((spark / "temporary").iterdir()) == []
    assert dict(os.environ) == before
