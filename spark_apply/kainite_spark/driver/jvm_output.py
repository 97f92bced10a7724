"""Turns the output of Spark's JVM into log events, so that all output of the apply job has the configured form.

The JVM prints its own log (``log4j2.properties``: ``LEVEL spark CLASS: MESSAGE``), warnings of Java, and in local mode
the output of Python workers. Lines that are of no use to an operator are left out.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Iterator
from typing import Final

from kainite.base.logs import event

_LOG = logging.getLogger(__name__)

_LINE: Final = re.compile(r"(?P<level>TRACE|DEBUG|INFO|WARN|ERROR|FATAL) spark (?P<source>\S+): (?P<message>.*)")
_LEVELS: Final = {"WARN": logging.WARNING, "ERROR": logging.ERROR, "FATAL": logging.CRITICAL}
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
    with open(descriptor, encoding="utf-8", errors="backslashreplace") as lines:
        for line in lines:
            tell(line.rstrip("\n"))


def tell(line: str) -> None:
    """Logs one line."""
    if not line.strip() or _NOISE.match(line):
        return
    if found := _LINE.fullmatch(line):
        level = _LEVELS.get(found["level"], logging.INFO)
        event(_LOG, level, "spark", source=found["source"], message=found["message"])
    else:
        event(_LOG, logging.WARNING, "spark", line=line)
