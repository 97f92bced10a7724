from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kainite.base.logs import JsonFormatter, KeyValueFormatter, configure, event

logger = logging.getLogger("kainite.test")


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], logging.LogRecord]:
    caplog.set_level(logging.INFO)
    return lambda: caplog.records[-1]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("shardId-0", "shardId-0"),
        (17, "17"),
        (0, "0"),
        (Path("/a/b"), "/a/b"),
        ("", '""'),
        ("a b", '"a b"'),
        ('say "no"', r'"say \"no\""'),
        ("a=b", '"a=b"'),
        ("two\nlines", r'"two\nlines"'),
        ("tab\tand\rreturn", r'"tab\tand\rreturn"'),
        ("é", "é"),
    ],
)
def test_a_value_is_quoted_where_it_would_be_read_as_more_than_one(
    value: object, shown: str, logged: Callable[[], logging.LogRecord]
) -> None:
    event(logger, logging.INFO, "child started", field=value)
    line = KeyValueFormatter().format(logged())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO child started field=.*", line)
    assert line.partition("field=")[2] == shown


def test_a_json_line_holds_the_same_fields(logged: Callable[[], logging.LogRecord]) -> None:
    event(logger, logging.WARNING, "child ended", shard="shardId-0", how=None, pid=17, path=Path("/a"))
    line = json.loads(JsonFormatter().format(logged()))
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "WARNING", "logger": "kainite.test", "event": "child ended",
        "shard": "shardId-0", "pid": 17, "path": "/a",
    }  # fmt: skip


def test_fields_without_a_value_are_left_out(logged: Callable[[], logging.LogRecord]) -> None:
    event(logger, logging.INFO, "child ended", how=None, pid=0)
    assert KeyValueFormatter().format(logged()).endswith("child ended pid=0")


@pytest.mark.parametrize("formatter", [KeyValueFormatter(), JsonFormatter()])
def test_a_traceback_is_part_of_the_event(
    formatter: logging.Formatter, logged: Callable[[], logging.LogRecord]
) -> None:
    try:
        raise ValueError("the reason")
    except ValueError:
        logger.exception("failed")
    assert "ValueError: the reason" in formatter.format(logged())


def test_an_event_below_the_level_is_not_formatted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    event(logger, logging.INFO, "child started", field=1)
    assert not caplog.records


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    yield root
    root.handlers, root.level = handlers, level


@pytest.mark.parametrize(("json_lines", "form"), [(False, KeyValueFormatter), (True, JsonFormatter)])
def test_all_events_go_to_stderr_in_one_form_and_aws_only_warns(
    json_lines: bool, form: type[logging.Formatter], root_logger: logging.Logger
) -> None:
    configure("DEBUG", json_lines=json_lines)
    (handler,) = root_logger.handlers
    assert isinstance(handler, logging.StreamHandler)
    assert handler.stream is sys.stderr
    assert isinstance(handler.formatter, form)
    assert root_logger.level == logging.DEBUG
    assert not logging.getLogger("botocore").isEnabledFor(logging.INFO)


def test_what_py4j_tells_of_a_lost_connection_is_left_out(
    root_logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure()
    try:
        raise ConnectionError("Answer from Java side is empty")
    except ConnectionError:
        root_logger.info("Exception while sending command.", exc_info=True)  # as py4j does it
    root_logger.warning("a warning")
    assert re.fullmatch(r"\S+ WARNING a warning\n", capsys.readouterr().err)
