"""The backlog of unresolved units: selects the next micro-batch, holds units back behind failed ones. Pure.

States of a unit here, and the status that the log shows for it:

=========  ============  ==========================================================================
state      status        meaning
=========  ============  ==========================================================================
waiting    in progress   not examined yet, or to be examined again; in log order
running    in progress   in the current micro-batch
again      in progress   refused once, or blocked by a unit that was: these units alone are the next
                         micro-batch, in log order on one job instance, after all units before them
failed     failed        refused twice, or malformed in the log; holds back units that conflict
blocked    blocked       conflicts with an earlier failed or blocked unit
(gone)     committed, discarded
=========  ============  ==========================================================================

Transitions: waiting → running | blocked (:meth:`Backlog.take`); running → gone | again, and from a
serial micro-batch → gone | failed | waiting (:meth:`Backlog.settle`); failed → waiting
(:meth:`Backlog.retry`, and again → waiting with it) | gone (:meth:`Backlog.discard`, or overtaken);
blocked → waiting whenever a failed unit goes away.

Invariants:

* units of one micro-batch have one scheme of signatures, so that each conflict among them shows in their signatures; a
  unit of another scheme begins another micro-batch. :mod:`kainite_spark.plan.holders` has the rule for units that hold
  others back;
* a unit never runs while an earlier unit that it conflicts with is failed or blocked. The exception is
  a correction or reversal: it passes the failed units that it conflicts with, provided that no
  other unit holds it back. When it commits, those failed units are discarded, and only then the
  units that they held back are examined again; when it fails, nothing changes for them;
* with ``onUowFailure=skip`` a failed unit holds back no other, and no unit is ever blocked;
* the whole state can be folded anew from the log: a crash loses only the note that a unit was refused
  once, and the unit is tried twice again.

Examination is lazy: a micro-batch takes from the front and leaves the units behind untouched, so a
failure in front of a long backlog costs nothing until a unit's turn comes. For the same reason the
log shows a released unit as blocked until its turn comes.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from kainite.log.format.entry import Outcome, UnitStatus
from kainite.settings import OnFailure
from kainite.uow.conflicts import conflict
from kainite.uow.scheme import MIXED, Comparisons, Scheme
from kainite_spark.plan.holders import Holders
from kainite_spark.plan.pending_unit import PendingUnit


@dataclass(frozen=True, slots=True)
class Selection:
    """The units of the next micro-batch, in log order; if ``serial``, one job instance applies all."""

    units: tuple[PendingUnit, ...]
    serial: bool = False


class Backlog:
    """All units of the log that are neither committed nor discarded, and which of them may run next.

    Args:
        policy: whether a failed unit holds back units that conflict with it.
    """

    def __init__(self, policy: OnFailure = OnFailure.BLOCK) -> None:
        self._policy = policy
        self._waiting: deque[PendingUnit] = deque()
        self._running: dict[int, PendingUnit] = {}
        self._serial = False
        self._again: list[PendingUnit] = []
        self._failed: dict[int, tuple[PendingUnit, str | None]] = {}
        self._blocked: dict[int, tuple[PendingUnit, int]] = {}
        self._schemes = Comparisons()
        self._holders = Holders(self._schemes)
        self._overtaken: dict[int, tuple[int, ...]] = {}
        self._unreported = _Unreported()

    @property
    def waiting(self) -> int:
        """Returns how many units are waiting or to be tried again."""
        return len(self._waiting) + len(self._again)

    @property
    def failed(self) -> dict[int, tuple[PendingUnit, str | None]]:
        """Returns the failed units and their causes, by transaction id."""
        return dict(self._failed)

    def know(self, scheme_id: str, scheme: Scheme) -> None:
        """Makes a scheme known that units name."""
        self._schemes.add(scheme_id, scheme)

    def unresolved(self) -> Iterable[int]:
        """Yields the transaction ids of all units that are neither committed nor discarded, in no certain order."""
        yield from (unit.tid for unit in self._waiting)
        yield from (unit.tid for unit in self._again)
        yield from self._running
        yield from self._failed
        yield from self._blocked

    def add(self, unit: PendingUnit, status: UnitStatus = UnitStatus.IN_PROGRESS, cause: str | None = None) -> None:
        """Adds a unit with its status in the log; units come in log order, each once."""
        self._unreported.published(unit.tid, status, cause)
        if status is UnitStatus.FAILED:
            self._fail(unit, cause)
        else:
            self._waiting.append(unit)

    def take(self, max_units: int, max_deltas: int) -> Selection:
        """Selects the units of the next micro-batch; none when no unit can run.

        After it, :meth:`settle` must be called before any other method.

        Args:
            max_units: most units.
            max_deltas: most deltas; a larger unit goes alone.
        """
        self._serial = bool(self._again)
        chosen = self._again if self._again else self._select(max_units, max_deltas)
        self._again = []
        self._running = {unit.tid: unit for unit in chosen}
        return Selection(tuple(chosen), self._serial)

    def settle(self, results: Iterable[Outcome]) -> None:
        """Takes in the outcomes of the micro-batch; a unit without an outcome was not tried."""
        unsettled: list[PendingUnit] = []
        for result in results:
            unit = self._running.pop(result.tid)
            if result.status is UnitStatus.COMMITTED:
                self._commit(result)
            elif not self._serial:
                self._again.append(unit)
            elif result.status is UnitStatus.FAILED:
                self._fail(unit, result.cause)
            else:
                unsettled.append(unit)
        not_tried = self._running.values()
        if self._serial:
            self._again.extend(not_tried)
            self._wait(unsettled)
        else:
            self._wait(not_tried)
        self._again.sort(key=_tid)
        self._running = {}

    def retry(self, tid: int, attempt: int, anew: PendingUnit | None = None) -> None:
        """Queues a failed unit for another try, with the units that it held back.

        Args:
            tid: the unit.
            attempt: how often it was retried, this time included.
            anew: the unit as it is now, if it may be another than the one that failed.
        """
        unit, _ = self._failed.pop(tid)
        self._unreported.forget(tid)
        # A correction that passed the failed unit may be in this list. It must not run before the unit now.
        again, self._again = self._again, []
        self._release(replace(anew or unit, attempt=attempt), *again)

    def widen(self, unit: PendingUnit, written: AbstractSet[int], read: AbstractSet[int]) -> None:
        """Lets a failed unit hold back further units, because more of it has come.

        Args:
            unit: as it is now.
            written, read: the signatures that are new.
        """
        if unit.tid not in self._failed:
            return
        self._failed[unit.tid] = (unit, self._failed[unit.tid][1])
        if self._policy is not OnFailure.SKIP:
            self._holders.add(replace(unit, written=written, read=read))

    def discard(self, tid: int) -> None:
        """Forgets a unit that a person discarded; releases the units that waited for it alone."""
        self._unreported.forget(tid)
        if self._failed.pop(tid, None) or self._blocked.pop(tid, None):
            self._release()
        else:
            self._waiting = deque(unit for unit in self._waiting if unit.tid != tid)
            self._again = [unit for unit in self._again if unit.tid != tid]

    def take_changes(self) -> tuple[Outcome, ...]:
        """Returns the outcomes that the log does not show yet, in the order in which they came; each one once."""
        return self._unreported.take(self._status)

    def _select(self, max_units: int, max_deltas: int) -> list[PendingUnit]:
        chosen: list[PendingUnit] = []
        deltas = 0
        while self._waiting and len(chosen) < max_units:
            if chosen and deltas + self._waiting[0].count > max_deltas:
                break
            if chosen and not _comparable(chosen[0], self._waiting[0]):
                break
            unit = self._waiting.popleft()
            blocker = self._holders.find(unit)
            if blocker is not None and not (unit.overtakes and self._passes_failed(unit)):
                self._block(unit, blocker)
            else:
                self._unreported.examined(unit.tid)
                chosen.append(unit)
                deltas += unit.count
        return chosen

    def _passes_failed(self, unit: PendingUnit) -> bool:
        """Returns whether no other unit than the failed ones that it conflicts with holds a correction back."""
        passed = {tid for tid, (failed, _) in self._failed.items() if tid < unit.tid and conflict(failed, unit)}
        rest = Holders(self._schemes)
        for tid in sorted([*(self._failed.keys() - passed), *self._blocked]):
            held = self._failed[tid][0] if tid in self._failed else self._blocked[tid][0]
            if tid in self._failed or rest.find(held) is not None:
                rest.add(held)
        if rest.find(unit) is not None:
            return False
        self._overtaken[unit.tid] = tuple(sorted(passed))
        return True

    def _commit(self, result: Outcome) -> None:
        self._unreported.resolved(result)
        overtaken = [tid for tid in self._overtaken.pop(result.tid, ()) if tid in self._failed]
        for tid in overtaken:
            del self._failed[tid]
            self._unreported.resolved(Outcome(tid, UnitStatus.DISCARDED, cause=f"overtaken by {result.tid}"))
        if overtaken:
            self._release()

    def _fail(self, unit: PendingUnit, cause: str | None) -> None:
        self._failed[unit.tid] = (unit, cause)
        self._overtaken.pop(unit.tid, None)
        self._unreported.changed(unit.tid)
        if self._policy is not OnFailure.SKIP:
            self._holders.add(unit)

    def _block(self, unit: PendingUnit, blocker: int) -> None:
        self._blocked[unit.tid] = (unit, blocker)
        self._unreported.changed(unit.tid)
        self._holders.add(unit)

    def _release(self, *units: PendingUnit) -> None:
        """Queues ``units`` and all blocked units to be examined; a unit that still has to wait is blocked again."""
        released = [unit for unit, _ in self._blocked.values()]
        self._blocked = {}
        self._holders = Holders(self._schemes)
        if self._policy is not OnFailure.SKIP:
            for failed, _ in self._failed.values():
                self._holders.add(failed)
        self._wait([*units, *released])

    def _wait(self, units: Iterable[PendingUnit]) -> None:
        back = sorted(units, key=_tid)
        if back:
            self._waiting = deque(heapq.merge(back, self._waiting, key=_tid))

    def _status(self, tid: int) -> tuple[UnitStatus, str | None]:
        if tid in self._failed:
            return UnitStatus.FAILED, self._failed[tid][1]
        if tid in self._blocked:
            return UnitStatus.BLOCKED, f"waits for {self._blocked[tid][1]}"
        return UnitStatus.IN_PROGRESS, None


def _comparable(one: PendingUnit, other: PendingUnit) -> bool:
    """Returns whether a conflict of the units shows in their signatures; only such units share a micro-batch."""
    return one.scheme == other.scheme and one.scheme != MIXED


def _tid(unit: PendingUnit) -> int:
    return unit.tid


_PLAIN: tuple[UnitStatus, str | None] = (UnitStatus.IN_PROGRESS, None)


@dataclass(slots=True)
class _Unreported:
    """Tracks the difference between the status that the log shows of a unit and the status that the unit has."""

    shown: dict[int, tuple[UnitStatus, str | None]] = field(default_factory=dict)
    touched: dict[int, None] = field(default_factory=dict)
    gone: list[Outcome] = field(default_factory=list)

    def published(self, tid: int, status: UnitStatus, cause: str | None) -> None:
        self.forget(tid)
        if status is not UnitStatus.IN_PROGRESS:
            self.shown[tid] = (status, cause)

    def forget(self, tid: int) -> None:
        self.shown.pop(tid, None)
        self.touched.pop(tid, None)

    def changed(self, tid: int) -> None:
        self.touched[tid] = None

    def examined(self, tid: int) -> None:
        """Notes that a unit runs: the log may show an outdated status of it."""
        if tid in self.shown:
            self.touched[tid] = None

    def resolved(self, outcome: Outcome) -> None:
        self.forget(outcome.tid)
        self.gone.append(outcome)

    def take(self, status_of: Callable[[int], tuple[UnitStatus, str | None]]) -> tuple[Outcome, ...]:
        outcomes = self.gone
        for tid in self.touched:
            now = status_of(tid)
            if now != self.shown.pop(tid, _PLAIN):
                outcomes.append(Outcome(tid, now[0], cause=now[1]))
            if now != _PLAIN:
                self.shown[tid] = now
        self.gone, self.touched = [], {}
        return tuple(outcomes)
