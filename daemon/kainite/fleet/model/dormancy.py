"""The hours in which a worker is to be empty: a cron expression of five fields, minute to day of the week.

A worker is dormant in each minute that the expression has, by its own host's clock: ``* 22-6 * * *`` is every night
from 22:00 to 6:59. The fields are cronsim's, which are Debian cron's (steps, lists, names, ``L``); ranges over the end
of the day, of the week or of the year work too, which cron does not have.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from kainite.base.errors import MissingExtraError

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS: tuple[tuple[int, int, tuple[str, ...]], ...] = (
    (0, 59, ()),
    (0, 23, ()),
    (1, 31, ()),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_RANGE = re.compile(r"(\w+)-(\w+)(/\d+)?")


def is_dormant(expression: str, at: datetime) -> bool:
    """Returns whether the cron expression matches the minute of ``at``, a time without a zone.

    Raises:
        ValueError: it is no such expression.
        MissingExtraError: cronsim is not installed.
    """
    try:
        from cronsim import CronSim, CronSimError
    except ImportError as error:
        raise MissingExtraError("fleetDormant needs cronsim: install kainite[fleet]") from error

    minute = at.replace(second=0, microsecond=0)
    try:
        return bool(next(CronSim(unwrapped(expression), minute - timedelta(minutes=1)), None) == minute)
    except CronSimError as error:
        raise ValueError(f"must be a cron expression of five fields like '* 22-6 * * *': {error}") from error


def unwrapped(expression: str) -> str:
    """Returns the expression with each range over the end of its unit as a list: ``22-2`` as ``22,23,0,1,2``.

    Raises:
        ValueError: it has not five fields.
    """
    fields = expression.upper().split()
    if len(fields) != len(_FIELDS):
        raise ValueError(f"must be a cron expression of five fields like '* 22-6 * * *', not {expression!r}")
    return " ".join(
        ",".join(_unwrapped_term(term, *_FIELDS[place]) for term in field.split(","))
        for place, field in enumerate(fields)
    )


def _unwrapped_term(term: str, low: int, high: int, names: tuple[str, ...]) -> str:
    found = _RANGE.fullmatch(term)
    if found is None:
        return term
    start, end = (_number(found[place], low, names) for place in (1, 2))
    if start is None or end is None or start <= end:
        return term
    step = int((found[3] or "/1")[1:])
    around = [*range(start, high + 1), *range(low, end + 1)]
    return ",".join(map(str, around[:: step or 1]))


def _number(text: str, low: int, names: tuple[str, ...]) -> int | None:
    if text in names:
        return names.index(text) + low
    return int(text) if text.isdigit() else None
