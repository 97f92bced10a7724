"""The times of units of work, for people and reports: latencies are their differences. No decision depends on them.

===============  ===========================================================  =========================
time             when                                                         by the clock of
===============  ===========================================================  =========================
``source_ms``    the source committed: the latest ``time`` of its deltas      the source
``arrived_ms``   the last record arrived of the batch of records that         Kinesis
                 brought the unit's last part
``collected_ms`` the log's owner took the unit's last part into a batch       the log's owner
``dispatched_ms`` it took the UNIT entry into a batch: the unit has its id    the log's owner
``applied_ms``   a task of the apply job learned that the target had          the host of the task
                 committed the unit; after a lost answer that is later
===============  ===========================================================  =========================

All are milliseconds since the epoch. A time is None if it is not known: no program reports it, or its entry is
truncated. Clocks of different hosts differ, so a difference of two times may be negative.
"""

from __future__ import annotations

from dataclasses import dataclass

from kainite.log.contract import LogStore
from kainite.log.format.entry import Entry, FragmentMeta, StatusMeta, UnitMeta, UnitStatus
from kainite.log.state.open_unit import OpenUnit, latest
from kainite.log.state.unit_state import UnitState
from kainite.log.state.units import UnitFold
from kainite.log.views.unit_conflicts import UnitConflicts


@dataclass(slots=True)
class UnitTimes:
    """The times of one unit."""

    source_ms: int | None = None
    arrived_ms: int | None = None
    collected_ms: int | None = None
    dispatched_ms: int | None = None
    applied_ms: int | None = None

    def collected(self, meta: FragmentMeta | UnitMeta, time_ms: int) -> None:
        """Notes a part, the last one so far, and the time at which its batch was formed."""
        self.source_ms = latest(self.source_ms, None if meta.time is None else meta.time // 1_000_000)
        self.arrived_ms = latest(self.arrived_ms, meta.arrived_ms)
        self.collected_ms = time_ms


class TimedUnits:
    """Folds entries into units, resolved units too, with their times and the unit that each conflicted with."""

    def __init__(self) -> None:
        self.fold = UnitFold(keep_resolved=True)
        self._open: dict[str, UnitTimes] = {}
        self._dispatched: dict[int, UnitTimes] = {}
        self._conflicts = UnitConflicts(self.fold)
        self._conflict_of: dict[int, int] = {}

    @property
    def units(self) -> dict[int, UnitState]:
        """Returns the dispatched units, by transaction id, in order."""
        return self.fold.units

    def of(self, tid: int) -> UnitTimes:
        """Returns the times of a dispatched unit."""
        return self._dispatched[tid]

    def conflict_of(self, tid: int) -> int | None:
        """Returns the unresolved unit that a unit conflicted with when it was dispatched; None without one."""
        return self._conflict_of.get(tid)

    def of_open(self, uow: str) -> UnitTimes:
        """Returns the times of a unit that is being collected."""
        return self._open[uow]

    def apply(self, tid: int, entry: Entry, time_ms: int) -> None:
        """Applies one entry."""
        match entry.meta:
            case FragmentMeta(uow=uow) as meta if uow in self.fold.late:
                self._dispatched[self.fold.late[uow]].collected(meta, time_ms)
            case FragmentMeta(uow=uow) as meta:
                self._open.setdefault(uow, UnitTimes()).collected(meta, time_ms)
            case UnitMeta() as meta:
                self._dispatch(tid, meta, self.fold.open.get(meta.uow), time_ms)
            case StatusMeta(outcomes=outcomes):
                for outcome in outcomes:
                    if outcome.status is UnitStatus.COMMITTED and outcome.tid in self._dispatched:
                        self._dispatched[outcome.tid].applied_ms = outcome.at_ms
        if (conflict := self._conflicts.apply(tid, entry, time_ms)) is not None:
            self._conflict_of[tid] = conflict

    def forget_below(self, low: int) -> None:
        """Forgets the resolved units with ids below ``low``: the log has truncated them."""
        for tid in self.fold.forget_resolved(low):
            del self._dispatched[tid]
            self._conflict_of.pop(tid, None)

    def _dispatch(self, tid: int, meta: UnitMeta, opened: OpenUnit | None, time_ms: int) -> None:
        times = self._dispatched[tid] = self._open.pop(meta.uow, UnitTimes())
        times.dispatched_ms = time_ms
        if _brings_a_part(meta, opened):
            times.collected(meta, time_ms)


def _brings_a_part(meta: UnitMeta, opened: OpenUnit | None) -> bool:
    """Returns whether a UNIT entry brings the unit's last part itself; true also where that is only likely."""
    if meta.arrived_ms is not None and not meta.watermark:
        return True
    if opened is None:
        return not meta.fragments
    return not meta.watermark and meta.cause is None and (opened.end is None or opened.count < meta.count)


def load_units(store: LogStore, partition: str, first_id: int) -> TimedUnits:
    """Returns the units in the entries from ``first_id`` to the tail, resolved ones too; only the index is read.

    Raises:
        LogCorruptError: the log does not read back as written.
    """
    units = TimedUnits()
    for batch in store.read_batches(partition, first_id, data=False, strong=True):
        for tid, entry in batch.entries_from(first_id):
            units.apply(tid, entry, batch.time_ms)
    return units
