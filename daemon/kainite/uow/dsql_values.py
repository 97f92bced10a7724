"""The values of Aurora DSQL's change records, as a target takes them. Pure.

DSQL writes points in time as numbers and binary columns as base64. The record does not tell which of its numbers is a
time: the type of the target's column does. These texts are PostgreSQL's spelling, which every target of Kainite takes.

==================  ============================================  ==============================================
target's column     DSQL's value                                  becomes
==================  ============================================  ==============================================
date                days since 1970                               ``2024-03-15``, ``0044-03-15 BC``, ``infinity``
time, timetz        microseconds since midnight                   ``14:30:00.123456``, with ``+00``
timestamp, …tz      microseconds since 1970                       ``2024-03-15 14:30:00.123456``, with ``+00``
interval            microseconds                                  ``2802603.000000 seconds``
bytea, blob         base64                                        ``\\x48656c6c6f``
any other           a number, a text (of a document, too), a      the same
                    boolean
==================  ============================================  ==============================================
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

Json: TypeAlias = Any
Convert: TypeAlias = Callable[[Json], Json]

_DAY_US: Final = 86_400_000_000
# PostgreSQL's dates reach from 4714-11-24 BC to 5874897-12-31. DSQL writes the infinite ones as numbers beyond.
_FIRST_DAY: Final = -2_440_588
_LAST_DAY: Final = 2_145_042_905
# The numbers that DSQL's documentation gives for infinite time stamps.
_INFINITY_US: Final = 9_223_372_036_825_200_000
_NO_BEGINNING_US: Final = -9_223_372_036_832_400_000
_PRECISION: Final = re.compile(r"\s*\([^)]*\)")
_ZONED: Final = ("timestamptz", "timetz", "with time zone")


@cache
def conversion(column_type: str) -> Convert:
    """Returns what makes DSQL's value one for a column of a type, given in the target's own spelling.

    The function that is returned raises ValueError for a value that such a column cannot have.
    """
    name = _PRECISION.sub("", column_type.lower()).strip()
    zone = "+00" if any(word in name for word in _ZONED) and "without time zone" not in name else ""
    if name.startswith(("timestamp", "datetime")):
        return _of_numbers(lambda micros: _timestamp(micros, zone))
    if name.startswith("time"):
        return _of_numbers(lambda micros: f"{_clock(micros)}{zone}")
    return _BY_NAME.get(name, _unchanged)


def _unchanged(value: Json) -> Json:
    return value


def _of_numbers(convert: Callable[[int], str]) -> Convert:
    """Returns a conversion that leaves all but whole numbers alone: text is in the target's own spelling already."""
    return lambda value: convert(value) if type(value) is int else value


def _of_text(convert: Callable[[str], Json]) -> Convert:
    return lambda value: convert(value) if isinstance(value, str) else value


def _date(days: int) -> str:
    if not _FIRST_DAY <= days <= _LAST_DAY:
        return "infinity" if days > 0 else "-infinity"
    year, month, day = _civil(days)
    return f"{year:04}-{month:02}-{day:02}" if year > 0 else f"{1 - year:04}-{month:02}-{day:02} BC"


def _civil(days: int) -> tuple[int, int, int]:
    """Returns the year (0 is 1 BC), month and day of a number of days since 1970, in the Gregorian calendar.

    ``datetime`` knows the years 1 to 9999 only. Eras of 400 years begin on the first of March, so that the leap day
    is a year's last.
    """
    era, of_era = divmod(days + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + year_of_era + (month <= 2), month, day


def _clock(micros: int) -> str:
    if not 0 <= micros <= _DAY_US:
        raise ValueError(f"{micros} microseconds are no time of the day")
    seconds, fraction = divmod(micros, 1_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"


def _timestamp(micros: int, zone: str) -> str:
    if micros in (_INFINITY_US, _NO_BEGINNING_US):
        return "infinity" if micros > 0 else "-infinity"
    days, of_day = divmod(micros, _DAY_US)
    if not _FIRST_DAY <= days <= _LAST_DAY:
        raise ValueError(f"{micros} microseconds since 1970 are no time stamp")
    day, _, era = _date(days).partition(" ")
    return " ".join(filter(None, (day, f"{_clock(of_day)}{zone}", era)))


def _interval(micros: int) -> str:
    seconds, fraction = divmod(abs(micros), 1_000_000)
    return f"{'-' if micros < 0 else ''}{seconds}.{fraction:06} seconds"


def _binary(text: str) -> str:
    return "\\x" + base64.b64decode(text, validate=True).hex()


_BY_NAME: Final[dict[str, Convert]] = {
    "date": _of_numbers(_date),
    "interval": _of_numbers(_interval),
    "bytea": _of_text(_binary),
    "blob": _of_text(_binary),
}
