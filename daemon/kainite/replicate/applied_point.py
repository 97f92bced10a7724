"""Tells from the log whether everything up to a place of the source is in the target. Pure, but for the reading.

The units come in the order of their commits (``uowOrder = dense``). So when a unit of the place, or of a later one, is
committed in the target, each earlier transaction is in the log, and only those units are left to be waited for that the
log has as unresolved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kainite.base.words import are, counted
from kainite.capture.places import commit_place_of
from kainite.log.contract import LogStore
from kainite.log.format.entry import UnitStatus
from kainite.log.views.latest_rows import read_latest_rows
from kainite.log.views.unit_table import LogRow, read_present_rows

_RESOLVED: Final = frozenset({UnitStatus.COMMITTED.value, UnitStatus.DISCARDED.value})
_STUCK: Final = frozenset({UnitStatus.FAILED.value, UnitStatus.BLOCKED.value})
_LATEST: Final = 200


@dataclass(frozen=True, slots=True)
class LogStanding:
    """How far the log and the target are.

    Attributes:
        collected: whether the log has a unit of the place, or of a later one.
        applied: whether such a unit is committed.
        left: how many units are not resolved, of those that were looked at.
        stuck: units that nobody applies before a person decides: their names, and why.
    """

    collected: bool
    applied: bool
    left: int
    stuck: tuple[str, ...]

    @property
    def is_done(self) -> bool:
        """Tells whether everything is applied, and nothing left."""
        return self.applied and not self.left

    def __str__(self) -> str:
        if not self.collected:
            return "the log does not have it yet (kainite extract, kainite run)"
        waits = f"{counted(self.left)} of the log {are(self.left)} not applied yet (kainite apply)"
        return waits if self.left else "the log has it, and it is applied"


def standing(rows: Iterable[LogRow], place: int) -> LogStanding:
    """Returns how far the log is with a place.

    Args:
        rows: the log's rows.
        place: that of a transaction of the source (:mod:`kainite.capture.places`).
    """
    rows = list(rows)
    there = [row for row in rows if row.id is not None and (commit_place_of(row.uow) or 0) >= place]
    left = [row for row in rows if row.status not in _RESOLVED]
    stuck = tuple(f"{row.uow} ({row.status}: {row.cause})" for row in left if row.status in _STUCK)
    committed = any(row.status == UnitStatus.COMMITTED.value for row in there)
    return LogStanding(bool(there), committed, len(left), stuck)


def read_standing(store: LogStore, partition: str, place: int) -> LogStanding:
    """Returns how far the log is with a place: reads the log's end, and all of it where the end says that all is done.

    Raises:
        LogError: the log cannot be read.
    """
    latest = standing(read_latest_rows(store, partition, _LATEST), place)
    return standing(read_present_rows(store, partition), place) if latest.is_done else latest


def stuck_units(store: LogStore, partition: str) -> tuple[str, ...]:
    """Returns the units that nobody applies before a person decides.

    Raises:
        LogError: the log cannot be read.
    """
    return standing(read_present_rows(store, partition), 0).stuck
