"""The units that hold back later units, and the question for which of them a unit waits. Pure.

A unit waits for an earlier holder when

* their signatures conflict (:mod:`kainite.uow.conflicts`); or
* they were signed under different schemes, and signatures of these cannot be compared (:mod:`kainite.uow.scheme`); or
* the holder has *unsigned* tables, and foreign keys connect a table of the unit with one of these tables.

The second and third rule replace the comparison where signatures do not show a conflict. They cost nothing while all
holders have the unit's own scheme and no unsigned table; otherwise each distinct set of tables of a holder is looked at
once.
"""

from __future__ import annotations

from kainite.log.state.unit_state import UnitState
from kainite.uow.conflicts import EarliestConflicts, ReadWriteSets
from kainite.uow.scheme import MIXED, Comparisons

_Tables = tuple[str, ...]


class Holders:
    """Units that hold others back.

    Args:
        schemes: the schemes that units name.
    """

    def __init__(self, schemes: Comparisons) -> None:
        self._schemes = schemes
        self._signed = EarliestConflicts()
        self._by_scheme: dict[str, dict[_Tables, int]] = {}
        self._unsigned: dict[_Tables, int] = {}
        self._any = False

    def add(self, unit: UnitState) -> None:
        """Registers a holder; holders may come in any order."""
        self.widen(unit, unit)

    def widen(self, unit: UnitState, more: ReadWriteSets) -> None:
        """Registers a holder's new signatures, and the tables that it touches now."""
        self._any = True
        self._signed.add(unit.tid, more.written, more.read)
        if unit.scheme is not None:
            _earliest(self._by_scheme.setdefault(unit.scheme, {}), unit.tables, unit.tid)
        if unit.unsigned:
            _earliest(self._unsigned, unit.unsigned, unit.tid)

    def find(self, unit: UnitState) -> int | None:
        """Returns a holder before ``unit`` for which the unit waits, the earliest by one rule; None without one."""
        if not self._any:
            return None
        found = self._signed.find(unit.tid, unit.written, unit.read)
        earliest = unit.tid if found is None else found
        if unit.scheme is not None:
            for scheme, holders in self._by_scheme.items():
                if scheme != unit.scheme or scheme == MIXED:
                    earliest = min(earliest, self._parted(unit, scheme, holders))
        for tables, tid in self._unsigned.items():
            if tid < earliest and self._schemes.connected(unit.scheme, tables, unit.tables):
                earliest = tid
        return earliest if earliest < unit.tid else None

    def _parted(self, unit: UnitState, scheme: str, holders: dict[_Tables, int]) -> int:
        """Returns the earliest holder of another scheme for which the unit waits; the unit itself if there is none."""
        parted = self._schemes.parted
        waits = (tid for tables, tid in holders.items() if parted(scheme, tables, unit.scheme, unit.tables))
        return min(waits, default=unit.tid)


def _earliest(holders: dict[_Tables, int], tables: _Tables, tid: int) -> None:
    holders[tables] = min(tid, holders.get(tables, tid))
