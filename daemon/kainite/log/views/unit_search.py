"""Finds units among all units of a log by status, table, name, cause and time, page by page. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.unit_state import UnitState
from kainite.log.views.followed_units import FollowedUnits
from kainite.log.views.unit_table import COLLECTING


@dataclass(frozen=True, slots=True)
class UnitSearch:
    """What a unit must fit.

    Attributes:
        statuses: one of these; empty: any.
        table: it changes this table; empty: any.
        name: a piece of its name, in either case, or its transaction id.
        cause: a piece of its cause, in either case.
        since_ms, until_ms: when the log had it first, milliseconds since the epoch; None: any time.
    """

    statuses: frozenset[str] = frozenset()
    table: str = ""
    name: str = ""
    cause: str = ""
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def narrows(self) -> bool:
        """Tells whether anything but the status is asked for."""
        times = self.since_ms is not None or self.until_ms is not None
        return bool(self.table or self.name or self.cause or times)


@dataclass(frozen=True, slots=True)
class FoundUnits:
    """What a search found.

    Attributes:
        counts: how many units of each status fit in everything but the status.
        units: the units that fit, the latest first; those that are being collected before the others.
    """

    counts: Mapping[str, int]
    units: Sequence[UnitState | OpenUnit]


def find(units: FollowedUnits, search: UnitSearch) -> FoundUnits:
    """Returns the units that a search finds."""
    counts: Counter[str] = Counter()
    opened: list[UnitState | OpenUnit] = []
    found: list[UnitState | OpenUnit] = []
    wanted = search.statuses
    for unit in _open(units, search):
        counts[COLLECTING] += 1
        if not wanted or COLLECTING in wanted:
            opened.append(unit)
    for each in _dispatched(units, search):
        status = each.status.value
        counts[status] += 1
        if not wanted or status in wanted:
            found.append(each)
    opened.reverse()
    found.reverse()
    return FoundUnits(counts, opened + found)


def all_tables(units: FollowedUnits) -> list[str]:
    """Returns the tables that unresolved units and the latest units touch, by name."""
    tables: set[str] = set()
    for unit in units.open.values():
        tables.update(unit.touched.tables)
    for tid in units.tids[-1_000:]:
        unit_of = units.unit(tid)
        tables.update(unit_of.tables if unit_of is not None else ())
    return sorted(tables)


def _open(units: FollowedUnits, search: UnitSearch) -> Iterator[OpenUnit]:
    name, cause = search.name.lower(), search.cause.lower()
    for unit in units.open.values():
        if name and name not in unit.uow.lower():
            continue
        if search.table and search.table not in unit.touched.tables:
            continue
        if cause and cause not in (unit.lacks or "").lower():
            continue
        if _in_time(unit.opened_ms, search):
            yield unit


def _dispatched(units: FollowedUnits, search: UnitSearch) -> Iterator[UnitState]:
    if not search.narrows:
        yield from units.dispatched()
        return
    name, table, cause = search.name.lower(), search.table, search.cause.lower()
    timed = search.since_ms is not None or search.until_ms is not None
    number = int(name) if name.isdecimal() and len(name) < 19 else None
    for unit in units.dispatched():
        if cause and (unit.cause is None or cause not in unit.cause.lower()):
            continue
        if name and name not in unit.uow.lower() and unit.tid != number:
            continue
        if table and table not in unit.tables:
            continue
        if timed and not _in_time(units.dispatched_ms(unit.tid), search):
            continue
        yield unit


def _in_time(at_ms: int | None, search: UnitSearch) -> bool:
    if at_ms is None:
        return search.since_ms is None and search.until_ms is None
    since, until = search.since_ms, search.until_ms
    return (since is None or at_ms >= since) and (until is None or at_ms < until)
