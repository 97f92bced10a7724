"""Times on the command line: ISO 8601, in UTC where no zone is given, or seconds since the epoch."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

import click

TIME: Final = "TIME"
"""The name of such an option's value."""

_LAST_S: Final = 253_402_300_799.0


def epoch_seconds(text: str) -> float:
    """Returns a time as seconds since the epoch.

    Raises:
        ValueError: the text is no time, or none between 1970 and the end of the year 9999.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = _utc(text).timestamp()
    if not (math.isfinite(seconds) and 0 <= seconds <= _LAST_S):
        raise ValueError(f"{text!r} is no time from 1970 on")
    return seconds


def epoch_ms_option(_context: click.Context, _parameter: click.Parameter, value: str | None) -> int | None:
    """Returns an option's time as milliseconds since the epoch; the callback of such an option."""
    try:
        return None if value is None else round(1000 * epoch_seconds(value))
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def _utc(text: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time such as 2026-11-21T09:30:00Z") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
