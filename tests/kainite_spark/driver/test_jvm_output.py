"""Tests that what the JVM prints becomes log events."""

from __future__ import annotations

import logging
import subprocess
from typing import Any

import pytest

from kainite_spark.driver.jvm_output import tell, told_as_events
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
