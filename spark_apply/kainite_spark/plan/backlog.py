"""Which units may go to the next micro-batch, and which are held back behind a failed one. Pure.

States of a unit here, and the status that the log shows for it:

=========  ============  ==========================================================================
state      status        meaning
=========  ============  ==========================================================================
waiting    in progress   not looked at yet, or to be looked at again; kept in log order
running    in progress   in the micro-batch that runs
again      in progress   refused once, or behind one that was: the next micro-batch is these alone,
                         in log order on one job instance, after all their predecessors
failed     failed        refused twice, or broken before it came here; holds back what conflicts
blocked    blocked       conflicts with an earlier unit that is failed or blocked
(gone)     committed, discarded
=========  ============  ==========================================================================

Transitions: waiting → running | blocked (:meth:`Backlog.take`); running → gone | again, and from a
serial micro-batch → gone | failed | waiting (:meth:`Backlog.settle`); failed → waiting
(:meth:`Backlog.retry`, and again → waiting with it) | gone (:meth:`Backlog.discard`, or overtaken);
blocked → waiting whenever something that holds back goes away.

Invariants:

* a unit never runs while an earlier one that it conflicts with is failed or blocked, but for a
  correction or reversal: that one passes the failed units it conflicts with, if it were free
  to go without them. When it commits they are discarded, and only then what they held back
  is looked at again; when it fails nothing has changed for them;
* with ``onUowFailure=skip`` failed units hold back nobody, and nothing is ever blocked;
* everything here can be folded anew from the log: a crash loses nothing but the note that a unit
  was refused once, and it is tried twice again.

Looking at units is lazy: the micro-batch takes from the front, and units behind are not
touched, so a failure in front of a long backlog costs nothing until its turn comes. In the
same way a released unit is shown as blocked until its turn comes.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from kainite.log.format.entry import Outcome, UnitStatus
from kainite.settings import OnFailure
from kainite.uow.conflicts import EarliestConflicts, conflict
from kainite_spark.plan.pending_unit import PendingUnit


@dataclass(frozen=True, slots=True)
class Selection:
    """The units of a micro-batch, in log order; ``serial``: all on one job instance."""

    units: tuple[PendingUnit, ...]
    serial: bool = False


class Backlog:
    """All units of the log that are not resolved, and what may be done with them next.

    Args:
        policy: whether failed units hold others back.
    """

    def __init__(self, policy: OnFailure = OnFailure.BLOCK) -> None:
        self._policy = policy
        self._waiting: deque[PendingUnit] = deque()
        self._running: dict[int, PendingUnit] = {}
        self._serial = False
        self._again: list[PendingUnit] = []
        self._failed: dict[int, tuple[PendingUnit, str | None]] = {}
        self._blocked: dict[int, tuple[PendingUnit, int]] = {}
        self._holders = EarliestConflicts()
        self._overtaken: dict[int, tuple[int, ...]] = {}
        self._unreported = _Unreported()

    @property
    def waiting(self) -> int:
        """How many units may have something to do."""
        return len(self._waiting) + len(self._again)

    @property
    def failed(self) -> dict[int, tuple[PendingUnit, str | None]]:
        """Failed units and their causes."""
        return dict(self._failed)

    def unresolved(self) -> Iterable[int]:
        """Transaction ids of all units that are neither committed nor discarded; any order."""
        yield from (unit.tid for unit in self._waiting)
        yield from (unit.tid for unit in self._again)
        yield from self._running
        yield from self._failed
        yield from self._blocked

    def add(self, unit: PendingUnit, status: UnitStatus = UnitStatus.IN_PROGRESS, cause: str | None = None) -> None:
        """Take in a unit as the log has it; units come in log order, each once."""
        self._unreported.published(unit.tid, status, cause)
        if status is UnitStatus.FAILED:
            self._fail(unit, cause)
        else:
            self._waiting.append(unit)

    def take(self, max_units: int, max_deltas: int) -> Selection:
        """The next micro-batch; empty when there is nothing to do.

        Every unit taken must come back through :meth:`settle` before anything else is called.

        Args:
            max_units: most units of it.
            max_deltas: most deltas of it, though a single larger unit goes alone.
        """
        self._serial = bool(self._again)
        chosen = self._again if self._again else self._look(max_units, max_deltas)
        self._again = []
        self._running = {unit.tid: unit for unit in chosen}
        return Selection(tuple(chosen), self._serial)

    def settle(self, results: Iterable[Outcome]) -> None:
        """Take in what the micro-batch did. Units without a result were not tried."""
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

    def retry(self, tid: int, attempt: int) -> None:
        """A failed unit is to be tried again: it and what it held back are looked at anew."""
        unit, _ = self._failed.pop(tid)
        self._unreported.forget(tid)
        # A correction that passed the unit may stand among these; it must not go before the unit now.
        again, self._again = self._again, []
        self._release(replace(unit, attempt=attempt), *again)

    def discard(self, tid: int) -> None:
        """A unit was discarded by somebody else: what waits only for it is released."""
        self._unreported.forget(tid)
        if self._failed.pop(tid, None) or self._blocked.pop(tid, None):
            self._release()
        else:
            self._waiting = deque(unit for unit in self._waiting if unit.tid != tid)
            self._again = [unit for unit in self._again if unit.tid != tid]

    def take_changes(self) -> tuple[Outcome, ...]:
        """Outcomes that the log does not know yet, in the order in which they came; each given once."""
        return self._unreported.take(self._status)

    def _look(self, max_units: int, max_deltas: int) -> list[PendingUnit]:
        chosen: list[PendingUnit] = []
        deltas = 0
        while self._waiting and len(chosen) < max_units:
            if chosen and deltas + self._waiting[0].count > max_deltas:
                break
            unit = self._waiting.popleft()
            blocker = _blocker(self._holders, unit)
            if blocker is not None and not (unit.overtakes and self._overtakes(unit)):
                self._block(unit, blocker)
            else:
                self._unreported.looked_at(unit.tid)
                chosen.append(unit)
                deltas += unit.count
        return chosen

    def _overtakes(self, unit: PendingUnit) -> bool:
        """Whether a correction passes the failed units it conflicts with: not when others hold it back as well."""
        passed = {tid for tid, (failed, _) in self._failed.items() if tid < unit.tid and conflict(failed, unit)}
        rest = EarliestConflicts()
        for tid in sorted([*(self._failed.keys() - passed), *self._blocked]):
            held = self._failed[tid][0] if tid in self._failed else self._blocked[tid][0]
            if tid in self._failed or _blocker(rest, held) is not None:
                rest.add(held.tid, held.written, held.read)
        if _blocker(rest, unit) is not None:
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
            self._holders.add(unit.tid, unit.written, unit.read)

    def _block(self, unit: PendingUnit, blocker: int) -> None:
        self._blocked[unit.tid] = (unit, blocker)
        self._unreported.changed(unit.tid)
        self._holders.add(unit.tid, unit.written, unit.read)

    def _release(self, *units: PendingUnit) -> None:
        """Let everything blocked be looked at again; who still has to wait is blocked anew."""
        released = [unit for unit, _ in self._blocked.values()]
        self._blocked = {}
        self._holders = EarliestConflicts()
        if self._policy is not OnFailure.SKIP:
            for failed, _ in self._failed.values():
                self._holders.add(failed.tid, failed.written, failed.read)
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


def _blocker(holders: EarliestConflicts, unit: PendingUnit) -> int | None:
    return holders.find(unit.tid, unit.written, unit.read)


def _tid(unit: PendingUnit) -> int:
    return unit.tid


_PLAIN: tuple[UnitStatus, str | None] = (UnitStatus.IN_PROGRESS, None)


@dataclass(slots=True)
class _Unreported:
    """The difference between what the log shows of units and what they are."""

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

    def looked_at(self, tid: int) -> None:
        """A unit goes to a micro-batch: what was shown of it before may be over."""
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
