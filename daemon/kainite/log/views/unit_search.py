"""Finds units among all units of a log, page by page, by the filter that commands and requests have. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from kainite.log.state.unit_filter import UnitFilter
from kainite.log.state.unit_state import UnitState
from kainite.log.views.followed_units import FollowedUnits
from kainite.log.views.unit_table import COLLECTING, LogRow

_LATEST = 1_000


@dataclass(frozen=True, slots=True)
class FoundUnits:
    """What a search found.

    Attributes:
        counts: how many units of each status fit in everything but the status.
        total: how many units fit.
        rows: those that were asked for, the latest first; units that are being collected stand before the others.
        tables: for each row, the tables that the unit touches.
        parts: for each row, the status in each of several targets; empty where it is resolved, or has no parts.
    """

    counts: Mapping[str, int]
    total: int
    rows: Sequence[LogRow]
    tables: Sequence[Sequence[str]]
    parts: Sequence[Mapping[str, str]]


def find(units: FollowedUnits, wanted: UnitFilter, skip: int = 0, most: int = 50, target: str = "") -> FoundUnits:
    """Returns the units that a filter takes.

    Args:
        units: all units.
        wanted: the filter.
        skip: how many of the latest ones are left out.
        most: how many rows are made.
        target: one of several targets: only units that are not resolved there, as they are there.
    """
    anything = msgspec.structs.replace(wanted, statuses=())
    opened = [] if target else [row for row in _open_rows(units) if anything.takes(row)]
    opened.reverse()
    if anything or target:
        dispatched = units.in_target(target) if target else units.dispatched()
        fitting = [unit for unit in dispatched if anything.takes(unit)]
        counts = Counter(unit.status.value for unit in fitting)
        latest: Iterator[UnitState] = reversed(fitting)
    else:
        counts, latest = units.counts(), units.latest()
    counts[COLLECTING] += len(opened)
    asked = wanted.statuses or tuple(counts)
    if COLLECTING not in asked:
        opened = []
    total = sum(counts[status] for status in asked)
    shown = opened[skip : skip + most]
    tables: list[Sequence[str]] = [sorted(row.tables) for row in shown]
    begin = max(0, skip - len(opened))
    chosen = (unit for unit in latest if unit.status.value in asked)
    for unit in islice(chosen, begin, begin + most - len(shown)):
        shown.append(units.row(unit))
        tables.append(unit.tables)
    return FoundUnits(counts, total, shown, tables, [_parts(units, row) for row in shown])


def all_tables(units: FollowedUnits) -> list[str]:
    """Returns the tables that the units which are being collected and the latest units touch, by name."""
    tables = {table for unit in units.open.values() for table in unit.touched.tables}
    for unit in islice(units.latest(), _LATEST):
        tables.update(unit.tables)
    return sorted(tables)


def _parts(units: FollowedUnits, row: LogRow) -> dict[str, str]:
    unit = units.unit(row.id) if units.parts is not None and row.id is not None else None
    if units.parts is None or unit is None or unit.resolved:
        return {}
    return {name: part.status.value for name, part in units.parts.of(unit.tid).items()}


def _open_rows(units: FollowedUnits) -> Iterator[LogRow]:
    for unit in units.open.values():
        row = units.row(unit)
        row.signature = sorted(unit.touched.tables)
        yield row
