"""Names of the JVM's classes that are kept: a job asks for none of them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kainite_spark.driver.jvm_names import NAMES, keep_names

LOOKS_UP = "Command to send: r\n"


def lookups(context: Any, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Runs a job as the apply job's runner makes it; returns what py4j asked the JVM to look up for it."""
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "py4j.clientserver"):
        rows = context.parallelize([b"row"], 1).mapPartitions(iter).mapPartitionsWithIndex(lambda _, rows: rows)
        assert rows.collect() == [b"row"]
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith(LOOKS_UP)]


@pytest.mark.xdist_group("spark")
def test_a_job_looks_up_no_name_that_is_kept(spark: Any, caplog: pytest.LogCaptureFixture) -> None:
    context = spark.sparkContext
    jvm = context._gateway.jvm  # noqa: SLF001
    assert jvm is context._jvm  # noqa: SLF001 - the one that jobs use
    try:
        assert lookups(context, caplog)
        keep_names(jvm)
        assert not lookups(context, caplog)
    finally:
        for name in NAMES:
            vars(jvm).pop(name, None)


@pytest.mark.xdist_group("spark")
def test_a_class_that_is_not_there_is_left_alone(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kainite_spark.driver.jvm_names.NAMES", {"NoSuchClass": ("method",)})
    jvm = spark.sparkContext._gateway.jvm  # noqa: SLF001
    keep_names(jvm)
    assert "NoSuchClass" not in vars(jvm)
