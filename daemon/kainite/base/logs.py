"""Structured logs: one event once, as ``key=value`` pairs or as JSON lines.

``event(logger, logging.INFO, "child started", shard="shardId-0", pid=17)`` prints
``2026-11-21T09:30:00.123Z INFO child started shard=shardId-0 pid=17``.

Both forms hide secrets (:mod:`kainite.base.redaction`) and show control characters as escapes
(:mod:`kainite.base.display`), in the events of other libraries and in tracebacks too.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any

from kainite.base import display, open_files
from kainite.base.redaction import redacted, redacted_tree

_FIELDS = "kainite_fields"


def event(logger: logging.Logger, level: int, name: str, /, **fields: Any) -> None:
    """Logs one event.

    Args:
        logger: whose event it is.
        level: one of logging's levels.
        name: what happened, the same words each time.
        fields: the things that the event is about; ``str`` shows the values, and a field with None is left out.
    """
    if logger.isEnabledFor(level):
        shown = {key: value for key, value in fields.items() if value is not None}
        logger.log(level, name, extra={_FIELDS: shown})


def configure(level: str = "INFO", *, json_lines: bool = False) -> None:
    """Sends all events to stderr, in one of the two forms.

    Of other libraries warnings and errors alone; of psycopg errors alone: it warns of what follows from an error that
    it raises ("pipeline aborted"), and the error itself is told by who has caught it.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if json_lines else KeyValueFormatter())
    handler.addFilter(_is_told)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for noisy in ("boto3", "botocore", "urllib3", "py4j"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    logging.getLogger("psycopg").setLevel(logging.ERROR)


def _is_told(record: logging.LogRecord) -> bool:
    """Tells whether an event is shown: py4j tells of lost connections by the root logger, with a traceback at INFO."""
    return record.name != "root" or record.levelno >= logging.WARNING


class KeyValueFormatter(logging.Formatter):
    """``time level event key=value …``; values with spaces or control characters are quoted as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        pairs = [f"{key}={_plain(value)}" for key, value in _fields(record).items()]
        message = display.one_line(redacted(record.getMessage()))
        line = " ".join([_time(record), record.levelname, message, *pairs])
        return f"{line}\n{self._traceback(record)}" if record.exc_info else line

    def _traceback(self, record: logging.LogRecord) -> str:
        assert record.exc_info
        return display.lines(redacted(self.formatException(record.exc_info)))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, event, and the event's fields."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "event": redacted(record.getMessage()),
        }
        if record.exc_info:
            line["traceback"] = redacted(self.formatException(record.exc_info))
        return display.as_json({**line, **{key: _value(value) for key, value in _fields(record).items()}})


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Returns the event's fields, and what to do where one of them is an error that the text of it conceals."""
    fields: dict[str, Any] = getattr(record, _FIELDS, {})
    raised = record.exc_info[1] if record.exc_info else None
    errors = [value for value in (raised, *fields.values()) if isinstance(value, BaseException)]
    advice = next(filter(None, map(open_files.advice_on, errors)), None)
    return fields if advice is None else {"advice": advice, **fields}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _value(value: Any) -> Any:
    """Returns a field's value for JSON; what is not of JSON's kinds becomes text before secrets are looked for."""
    kept = value is None or isinstance(value, bool | int | float | str | list | tuple | set | frozenset | dict)
    return redacted_tree(value if kept else str(value))


def _plain(value: Any) -> str:
    text = redacted(str(value))
    if text and display.is_plain(text) and not any(character in text for character in ' "='):
        return text
    return display.as_json(text)
