"""The fold of log entries into units of work: the only code that says what an entry does to a unit.

A unit's life::

    (nothing) ── FRAGMENT ──► open ── UNIT ──► in progress ──► committed
                                │                 │    ▲
                                └── UNIT with     ▼    │ retry
                                    a cause ──► failed ┴──► discarded
                                in progress ──► blocked ──► in progress
                                in progress, blocked ──► discarding ──► discarded, or committed

The unit before its UNIT entry is :class:`~kainite.log.state.open_unit.OpenUnit`, from there on
:class:`~kainite.log.state.unit_state.UnitState`. A unit that failed before all its deltas had come goes on collecting,
as a failed unit (``UnitState.late``): FRAGMENT entries behind its UNIT entry add to its deltas, and their signatures to
what it holds back. Its place in the order stays that of its UNIT entry.

=================  ==========================================================================
entry              effect on the unit
=================  ==========================================================================
FRAGMENT           opens the unit, or adds deltas, causes and its end to the open unit, or to the failed
                   one that still collects
UNIT               dispatches the unit: as failed when the entry has a cause, else in progress
STATUS             sets status and cause; the job instance stays when an outcome names none.
                   IN_PROGRESS after FAILED is a retry. COMMITTED and DISCARDED resolve the unit. After
                   DISCARDING only these two have an effect
REFIT              replaces the failed unit's deltas and what it touches; the unit is no misfit any more
others             none
=================  ==========================================================================

The fold may begin anywhere in a log, for example at the low-water mark of a truncated log. A unit whose
first fragments are truncated then lacks their deltas, signatures and causes while it is open; its UNIT
entry repeats everything but the data. Outcomes of units that the fold has not seen have no effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kainite.log.format.entry import Entry, FragmentMeta, Outcome, RefitMeta, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.unit_state import RESOLVED, UnitState
from kainite.uow.touches import Touched


class UnitFold:
    """The units that result from folding a run of entries.

    Args:
        keep_resolved: keep committed and discarded units (a view of the whole log) instead of
            forgetting them (what remains to be done).

    Attributes:
        open: units that are being collected, by name, oldest first.
        units: dispatched units by transaction id, in order. A unit is in ``open`` or in ``units``, never in both.
        late: the transaction ids of unresolved units that failed before they were whole, by name.
        statuses: how many of ``units`` have each status.
    """

    def __init__(self, *, keep_resolved: bool = False) -> None:
        self.open: dict[str, OpenUnit] = {}
        self.units: dict[int, UnitState] = {}
        self.late: dict[str, int] = {}
        self.statuses: Counter[UnitStatus] = Counter()
        self._keep_resolved = keep_resolved
        self._lent_below = 0
        self._copied: set[str] = set()

    def failed(self, uow: str) -> UnitState | None:
        """Returns the unresolved unit ``uow`` if it failed before it was whole, also when it is whole now."""
        tid = self.late.get(uow)
        return None if tid is None else self.units.get(tid)

    def lend(self, next_id: int) -> tuple[list[OpenUnit], list[UnitState]]:
        """Returns the open units and the dispatched ones, as they are now: later entries do not change them.

        Nothing is copied but the lists. Units that collect grow in place, so each of these is copied before the next
        part is added to it.

        Args:
            next_id: the id of the next entry.
        """
        self._lent_below, self._copied = next_id, set()
        return list(self.open.values()), list(self.units.values())

    def take_back(self) -> None:
        """Notes that nobody looks any more at the units that were lent."""
        self._lent_below, self._copied = 0, set()

    def apply(self, tid: int, entry: Entry, time_ms: int) -> list[UnitState]:
        """Applies one entry.

        Args:
            tid: the entry's transaction id, higher than the ids of all earlier entries.
            entry: the entry; its data is not looked at.
            time_ms: when the entry's batch was formed, in milliseconds since the epoch.

        Returns:
            The units that the entry resolved, as they were before.
        """
        match entry.meta:
            case UnitMeta() as meta:
                self.dispatch(tid, entry, meta)
            case FragmentMeta(uow=uow) as meta if uow in self.late:
                failed = self.units[self.late[uow]]
                if failed.late is not None and self._is_lent(failed.late):
                    failed = failed.copy()
                self.units[failed.tid] = failed.with_late(tid, meta, entry.touched)
            case FragmentMeta() as meta:
                self.collect(tid, meta, entry.touched, time_ms)
            case RefitMeta() as meta if meta.unit in self.units:
                self.late.pop(meta.uow, None)
                self.units[meta.unit] = self.units[meta.unit].judged_anew(tid, meta, entry.touched)
            case StatusMeta(outcomes=outcomes):
                return [unit for outcome in outcomes for unit in self._settle(outcome)]
        return []

    def collect(self, tid: int, meta: FragmentMeta, touched: Touched, time_ms: int) -> OpenUnit:
        """Applies a FRAGMENT entry of a unit that is not in :attr:`late`; returns the unit."""
        unit = self.open.get(meta.uow)
        if unit is None:
            unit = self.open[meta.uow] = OpenUnit(meta.uow, time_ms)
        elif self._is_lent(unit):
            unit = self.open[meta.uow] = unit.copy()
        unit.add(tid, meta, touched)
        return unit

    def dispatch(self, tid: int, entry: Entry, meta: UnitMeta) -> UnitState:
        """Applies a UNIT entry; returns the unit."""
        opened = self.open.pop(meta.uow, None)
        if opened is not None and meta.cause and self._is_lent(opened):  # a failed unit may go on collecting
            opened = opened.copy()
        unit = UnitState.dispatched(tid, meta, entry.touched, opened)
        self.add(unit)
        return unit

    def add(self, unit: UnitState) -> None:
        """Adds a dispatched unit."""
        self.units[unit.tid] = unit
        self.statuses[unit.status] += 1
        if unit.late is not None:
            self.late[unit.uow] = unit.tid

    def forget_resolved(self, low: int) -> list[int]:
        """Forgets the resolved units with ids below ``low``; returns their ids. For a fold that keeps such units."""
        gone = []
        for tid, unit in self.units.items():
            if tid >= low:
                break
            if unit.status in RESOLVED:
                gone.append(tid)
        for tid in gone:
            self.statuses[self.units.pop(tid).status] -= 1
        return gone

    def _is_lent(self, unit: OpenUnit) -> bool:
        """Returns whether a unit was lent and not copied since; from now on it counts as copied."""
        began = unit.fragments[0] if unit.fragments else 0
        if began >= self._lent_below or unit.uow in self._copied:
            return False
        self._copied.add(unit.uow)
        return True

    def _settle(self, outcome: Outcome) -> Iterator[UnitState]:
        """Yields the unit if the outcome resolves it."""
        unit = self.units.get(outcome.tid)
        if unit is None:
            return
        self.statuses[unit.status] -= 1
        resolved = outcome.status in RESOLVED
        if resolved and not self._keep_resolved:  # the common case: nobody asks for a resolved unit
            del self.units[outcome.tid]
        else:
            settled = self.units[outcome.tid] = unit.settled(outcome)
            self.statuses[settled.status] += 1
        if resolved:
            if unit.late is not None:
                self.late.pop(unit.uow, None)
            yield unit
