"""The unit that each unit conflicted with when it was dispatched, for people: no decision depends on it.

The apply job decides which units a conflict holds back (:mod:`kainite.uow.conflicts`). Of a log whose beginning is
truncated, only the units behind the truncated part are known.
"""

from __future__ import annotations

from collections.abc import Iterable

from kainite.log.format.entry import Entry, FragmentMeta, RefitMeta, UnitMeta
from kainite.log.state.unit_state import UnitState
from kainite.log.state.units import UnitFold
from kainite.uow.conflicts import LatestConflicts


class UnitConflicts:
    """The latest unresolved units by their signatures, while entries are folded.

    Args:
        fold: the units before the entry that is noted.
    """

    def __init__(self, fold: UnitFold) -> None:
        self._fold = fold
        self._latest = LatestConflicts()

    def apply(self, tid: int, entry: Entry, time_ms: int) -> int | None:
        """Applies an entry to the fold; if it dispatches a unit, returns the unresolved unit in conflict with it.

        Arguments as :meth:`~kainite.log.state.units.UnitFold.apply`.
        """
        meta, touched, found = entry.meta, entry.touched, None
        if isinstance(meta, UnitMeta):
            found = self._latest.find(touched.written, touched.read)
            self._latest.add(tid, touched.written, touched.read)
        elif isinstance(meta, FragmentMeta) and meta.uow in self._fold.late:
            self._latest.widen(self._fold.late[meta.uow], touched.written, touched.read)
        elif isinstance(meta, RefitMeta) and meta.unit in self._fold.units:
            self._forget([self._fold.units[meta.unit]])
            self._latest.add(meta.unit, touched.written, touched.read)
        self._forget(self._fold.apply(tid, entry, time_ms))
        return found

    def _forget(self, units: Iterable[UnitState]) -> None:
        for unit in units:
            self._latest.remove(unit.tid, unit.written, unit.read)
