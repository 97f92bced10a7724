"""Tests that what the JVM prints becomes log events."""

from __future__ import annotations

import logging
import subprocess
from typing import Any

import pytest

from kainite.base import logs
from kainite_spark.driver.jvm_output import SparkOutput, tell, told_as_events
from support.waiting import eventually


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[int, dict[str, Any]]]:
    return [
        (record.levelno, record.__dict__["kainite_fields"]) for record in caplog.records if record.message == "spark"
    ]


@pytest.mark.parametrize(
    ("line", "level", "fields"),
    [
        ("ERROR spark Master: gone: away", logging.ERROR, {"source": "Master", "message": "gone: away"}),
        ("WARN spark a.B: x", logging.WARNING, {"source": "a.B", "message": "x"}),
        ("\tat org.apache.Foo(Foo.java:1)", logging.WARNING, {"line": "\tat org.apache.Foo(Foo.java:1)"}),
    ],
)
def test_a_line_is_an_event(caplog: pytest.LogCaptureFixture, line: str, level: int, fields: dict[str, str]) -> None:
    tell(line)
    assert told(caplog) == [(level, fields)]


@pytest.mark.parametrize(
    "line", ["", "  ", "WARNING: Using incubator modules: jdk.incubator.vector", 'Setting default log level to "WARN".']
)
def test_noise_is_left_out(caplog: pytest.LogCaptureFixture, line: str) -> None:
    caplog.set_level(logging.DEBUG)
    tell(line)
    assert told(caplog) == []


def test_a_process_s_lines_are_told_as_it_prints_them(caplog: pytest.LogCaptureFixture) -> None:
    with told_as_events() as output:
        subprocess.run(["printf", r"ERROR spark A: 1\n\xff\n"], stdout=output, check=True)
    eventually(lambda: len(told(caplog)) == 2)
    assert told(caplog) == [(logging.ERROR, {"source": "A", "message": "1"}), (logging.WARNING, {"line": "\\xff"})]


@pytest.mark.parametrize("fields", [{}, {"attempt": 1, "cause": 'a "b" = c', "level": "x"}, {"text": "a=1 b=2"}])
def test_an_event_of_a_python_worker_stays_the_event_that_it_was(
    caplog: pytest.LogCaptureFixture, fields: dict[str, Any]
) -> None:
    logs.event(logging.getLogger("worker"), logging.WARNING, "target transaction to be tried again", **fields)
    line = logs.KeyValueFormatter().format(caplog.records[0])
    caplog.clear()
    tell(line)
    (again,) = caplog.records
    assert (again.levelno, again.getMessage()) == (logging.WARNING, "target transaction to be tried again")
    assert again.__dict__["kainite_fields"] == {key: str(value) for key, value in fields.items()}


def test_a_line_of_a_worker_that_is_no_event_keeps_its_text(caplog: pytest.LogCaptureFixture) -> None:
    tell("2026-11-23T07:25:18.597Z ERROR broken: a=1 and more")
    (again,) = caplog.records
    assert (again.levelname, again.getMessage()) == ("ERROR", "broken: a=1 and more")


FRAMES = [
    "Traceback (most recent call last):",
    '  File "/x/pyspark.zip/pyspark/daemon.py", line 264, in manager',
    '  File "/x/pyspark.zip/pyspark/daemon.py", line 95, in worker',
]
BROKEN_PIPE = "BrokenPipeError: [Errno 32] Broken pipe"
SOURCE_LINES = ["    code = worker(sock, authenticated)", "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^"]


@pytest.mark.parametrize(
    "lines",
    [
        [*FRAMES, BROKEN_PIPE],
        [FRAMES[0], *FRAMES, BROKEN_PIPE, *FRAMES[1:], BROKEN_PIPE],  # of two workers
        [*FRAMES[:2], *SOURCE_LINES, FRAMES[2], "    outfile.flush()", BROKEN_PIPE],  # PySpark's sources are files
    ],
)
def test_the_traceback_of_an_idle_worker_that_spark_ends_is_left_out(
    caplog: pytest.LogCaptureFixture, lines: list[str]
) -> None:
    output = SparkOutput()
    for line in lines:
        output.take(line)
    output.end()
    assert told(caplog) == []


@pytest.mark.parametrize(
    "lines",
    [
        [*FRAMES, "ValueError: bad"],
        [FRAMES[0], '  File "/x/mine.py", line 3, in f', BROKEN_PIPE],
        [BROKEN_PIPE],
        [*SOURCE_LINES, BROKEN_PIPE],
        [*FRAMES, *SOURCE_LINES, "ValueError: bad"],
        FRAMES,
    ],
)
def test_any_other_traceback_is_told_whole(caplog: pytest.LogCaptureFixture, lines: list[str]) -> None:
    output = SparkOutput()
    for line in lines:
        output.take(line)
    output.end()
    assert [fields["line"] for _, fields in told(caplog)] == lines
