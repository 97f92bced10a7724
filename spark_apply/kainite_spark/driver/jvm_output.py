"""Turns the output of Spark's JVM into log events, so that all output of the apply job has the configured form.

The JVM prints its own log (``log4j2.properties``: ``LEVEL spark CLASS: MESSAGE``), warnings of Java, and in local mode
the output of Python workers: their log lines become the events that they were, without a second time stamp.

Lines that are of no use to an operator are left out. So is the traceback that each Python worker prints when Spark ends
it after a minute without a task: a ``BrokenPipeError`` with frames of PySpark's own daemon alone, with or without their
source lines. Such lines come mixed from several workers, so lines that may belong to one are held until the next line
tells.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Iterator
from typing import Final

import orjson

from kainite.base.logs import event

_LOG = logging.getLogger(__name__)

_LINE: Final = re.compile(r"(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL) spark (?P<source>\S+): (?P<message>.*)")
_LEVELS: Final = {"WARN": logging.WARNING, "ERROR": logging.ERROR, "FATAL": logging.CRITICAL}
_EVENT: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z (?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<text>.*)")
_FIELD: Final = re.compile(r' (?P<key>[a-z_]+)=(?P<value>"(?:[^"\\]|\\.)*"|[^\s"=]+)')
_IDLE_BEGIN: Final = re.compile(
    r"Traceback \(most recent call last\):|\s+File \".*/pyspark/daemon\.py\", line \d+, in \w+"
)
_SOURCE_LINE: Final = re.compile(r"    .*")
_IDLE_END: Final = "BrokenPipeError: [Errno 32] Broken pipe"
_NOISE: Final = re.compile(
    "WARNING: Using incubator modules|Setting default log level to|To adjust logging level use|"
    "Using Spark's default log4j"
)


@contextlib.contextmanager
def told_as_events() -> Iterator[int]:
    """Gives a file descriptor for a process's output, to be closed here afterwards; its lines become events.

    The thread that reads ends when the last process has closed its end.
    """
    reading, writing = os.pipe()
    threading.Thread(target=_read, args=(reading,), name="spark output", daemon=True).start()
    try:
        yield writing
    finally:
        os.close(writing)


def _read(descriptor: int) -> None:
    output = SparkOutput()
    with open(descriptor, encoding="utf-8", errors="backslashreplace") as lines:
        for line in lines:
            output.take(line.rstrip("\n"))
    output.end()


class SparkOutput:
    """The lines of one process and its workers, in the order in which they were printed."""

    def __init__(self) -> None:
        self._held: list[str] = []  # what may be the beginning of an idle worker's traceback

    def take(self, line: str) -> None:
        """Takes the next line."""
        if _IDLE_BEGIN.fullmatch(line) or (self._held and _SOURCE_LINE.fullmatch(line)):
            self._held.append(line)
        elif line == _IDLE_END and self._held:
            self._held.clear()
        else:
            self.end()
            tell(line)

    def end(self) -> None:
        """Logs the lines that are held."""
        held, self._held = self._held, []
        for line in held:
            tell(line)


def tell(line: str) -> None:
    """Logs one line."""
    if not line.strip() or _NOISE.match(line):
        return
    if found := _LINE.fullmatch(line):
        level = _LEVELS.get(found["level"], logging.INFO)
        event(_LOG, level, "spark", source=found["source"], message=found["message"])
    elif found := _EVENT.fullmatch(line):
        _tell_again(logging.getLevelNamesMapping()[found["level"]], found["text"])
    else:
        event(_LOG, logging.WARNING, "spark", line=line)


def _tell_again(level: int, text: str) -> None:
    """Logs an event that a Python worker has logged as text (:class:`kainite.base.logs.KeyValueFormatter`)."""
    first = _FIELD.search(text)
    name, pairs = (text[: first.start()], text[first.start() :]) if first else (text, "")
    if _FIELD.sub("", pairs):  # not the form of an event after all
        name, pairs = text, ""
    fields = {found["key"]: _value(found["value"]) for found in _FIELD.finditer(pairs)}
    event(_LOG, level, name, **fields)


def _value(text: str) -> str:
    try:
        return str(orjson.loads(text)) if text.startswith('"') else text
    except ValueError:
        return text
