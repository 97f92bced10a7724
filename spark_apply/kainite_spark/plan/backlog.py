"""The backlog of unresolved units: selects the next micro-batch, holds units back behind failed ones. Pure.

States of a unit here, and the status that the log shows for it:

=========  ============  ==========================================================================
state      status        meaning
=========  ============  ==========================================================================
waiting    in progress   not examined yet, or to be examined again; in log order
running    in progress   in the current micro-batch
again      in progress   refused once, or blocked by a unit that was: these units alone are the next
                         micro-batch, in log order on one job instance, after all units before them
delayed    in progress   the target was busy with it alone (a locked row); holds back units that conflict,
                         whatever the policy, since it will be applied; tried again when its pause is over, in
                         a micro-batch of delayed units. It stays delayed while it runs, or is waiting, again or
                         blocked for another reason
failed     failed        refused twice, or malformed in the log; holds back units that conflict
blocked    blocked       conflicts with an earlier failed, delayed or blocked unit
(gone)     committed, discarded
=========  ============  ==========================================================================

Transitions: waiting → running | blocked, and again → running | blocked (:meth:`Backlog.take`); running → gone |
delayed | again, and from a serial micro-batch → gone | delayed | failed | waiting (:meth:`Backlog.settle`);
failed → waiting (:meth:`Backlog.retry`, and again → waiting with it) | gone (:meth:`Backlog.discard`, or overtaken);
blocked → waiting whenever a failed or delayed unit goes away.

Invariants:

* units of one micro-batch have one scheme of signatures, so that each conflict among them shows in their signatures; a
  unit of another scheme begins another micro-batch. :mod:`kainite_spark.plan.holders` has the rule for units that hold
  others back;
* a unit never runs while an earlier unit that it conflicts with is failed, delayed or blocked. The exception is
  a correction or reversal: it passes the failed units that it conflicts with, provided that no
  other unit holds it back. When it commits, those failed units are discarded, and only then the
  units that they held back are examined again; when it fails, nothing changes for them. So it takes the failed units'
  place in the order: a unit that was blocked behind one of them comes earlier in the log and is applied later, and
  writes over what the correction wrote where both write a row. Every other pair of units that conflict keeps the
  log's order, the units that were blocked among themselves too;
* with ``onUowFailure=skip`` a failed unit holds back no other, and only delayed units do;
* with ``targetConsistency=prefix`` one job instance applies all units in log order, and tries nothing behind a unit
  that is busy or refused before that unit was tried again. A busy unit holds up all units behind it for
  :data:`PATIENCE` seconds, in which it is tried alone, and is delayed only then; with ``onUowFailure=stop`` it holds
  them up as long as it takes;
* delayed units take at most a fifth of the time while others can run, however many there are: a locked row costs a task
  a second for each try;
* the whole state can be folded anew from the log: a crash loses only the notes that a unit was refused
  once, or was delayed, and the unit is tried again.

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
from itertools import takewhile

from kainite.base.retry import Backoff
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.settings import Consistency, OnFailure
from kainite.uow.conflicts import conflict
from kainite.uow.scheme import MIXED, Comparisons, Scheme
from kainite_spark.plan.holders import Holders
from kainite_spark.plan.pending_unit import PendingUnit

DELAYS = Backoff.doubling(1.0, 60.0)
"""Pauses between the tries of a delayed unit."""

MAX_DELAYED = 8
"""Most delayed units of a micro-batch, so that it ends within seconds."""

REST = 4
"""How much longer than a micro-batch of delayed units other units go on before the next one."""

PATIENCE = 60.0
"""How long all units wait for a busy one with ``targetConsistency=prefix``, in seconds."""

_IN_FRONT = Backoff.doubling(0.5, 2.0)
"""Pauses between the tries of a busy unit that all others wait for."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The units of the next micro-batch, in log order.

    Attributes:
        units: the units.
        serial: one job instance applies all.
        alone: each unit gets a target transaction of its own.
        in_order: one job instance applies all, and tries nothing behind a unit that is busy or refused.
    """

    units: tuple[PendingUnit, ...]
    serial: bool = False
    alone: bool = False
    in_order: bool = False


@dataclass(slots=True)
class _Delay:
    """A delayed unit; ``due`` is None while the unit is elsewhere: running, again, waiting or blocked."""

    unit: PendingUnit
    failures: int
    due: float | None


@dataclass(slots=True)
class _InFront:
    """The busy unit that all others wait for; since when, how often it was tried, and when it is tried next."""

    tid: int
    since: float
    failures: int
    due: float


class Backlog:
    """All units of the log that are neither committed nor discarded, and which of them may run next.

    Args:
        policy: whether a failed unit holds back units that conflict with it.
        consistency: whether units are applied in log order, or only those that conflict.
    """

    def __init__(self, policy: OnFailure = OnFailure.BLOCK, consistency: Consistency = Consistency.CONFLICT) -> None:
        self._policy = policy
        self._prefix = consistency is Consistency.PREFIX
        self._in_front: _InFront | None = None
        self._in_order = False
        self._waiting: deque[PendingUnit] = deque()
        self._running: dict[int, PendingUnit] = {}
        self._serial = False
        self._alone_since: float | None = None
        self._rests_until = float("-inf")
        self._delayed: dict[int, _Delay] = {}
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
    def delayed(self) -> int:
        """Returns how many units are delayed, or busy in front of all others."""
        return len(self._delayed) + (self._in_front is not None)

    @property
    def oldest_waiting(self) -> int | None:
        """Returns the lowest transaction id that is waiting or to be tried again; None without one."""
        first = [units[0].tid for units in (self._waiting, self._again) if units]
        return min(first, default=None)

    @property
    def failures(self) -> int:
        """Returns how many units are failed."""
        return len(self._failed)

    @property
    def blocked(self) -> int:
        """Returns how many units wait for a failed or delayed one."""
        return len(self._blocked)

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
        yield from self._delayed
        yield from self._failed
        yield from self._blocked

    def add(self, unit: PendingUnit, status: UnitStatus = UnitStatus.IN_PROGRESS, cause: str | None = None) -> None:
        """Adds a unit with its status in the log; units come in log order, each once."""
        self._unreported.published(unit.tid, status, cause)
        if status is UnitStatus.FAILED:
            self._fail(unit, cause)
        else:
            self._waiting.append(unit)

    def take(self, max_units: int, max_deltas: int, now: float = 0.0) -> Selection:
        """Selects the units of the next micro-batch; none when no unit can run at present.

        After it, :meth:`settle` must be called before any other method.

        Args:
            max_units: most units.
            max_deltas: most deltas; a larger unit goes alone.
            now: seconds by a clock that only goes forward.
        """
        if self._in_front is not None and now < self._in_front.due:
            return Selection(())
        again, self._again = self._again, []
        chosen = [unit for unit in again if self._may_run(unit)]
        self._serial = bool(chosen)
        due = [] if chosen else self._due(now)
        self._alone_since = now if due else None
        # Behind a locked row nothing may pass, so whatever came along would be sent to the target in vain.
        chosen = chosen or due or self._select(1 if self._in_front is not None else max_units, max_deltas)
        self._in_order = self._prefix and not due
        self._running = {unit.tid: unit for unit in chosen}
        return Selection(tuple(chosen), self._serial, bool(due), self._in_order)

    def settle(self, results: Iterable[Outcome], now: float = 0.0) -> None:
        """Takes in the outcomes of the micro-batch; a unit without an outcome was not tried.

        Args:
            results: the outcomes; IN_PROGRESS for a unit that the target was busy with.
            now: seconds by the clock of :meth:`take`.
        """
        if self._alone_since is not None:
            self._rests_until = now + REST * (now - self._alone_since)
        unsettled: list[PendingUnit] = []
        for result in results:
            unit = self._running.pop(result.tid)
            if self._in_front is not None and self._in_front.tid == result.tid:
                if result.status is UnitStatus.IN_PROGRESS and self._all_wait_for(unit, now):
                    unsettled.append(unit)
                    continue
                self._in_front = None
            elif result.status is UnitStatus.IN_PROGRESS and self._in_order and self._all_wait_for(unit, now):
                unsettled.append(unit)
                continue
            if result.status is UnitStatus.COMMITTED:
                self._commit(result)
            elif result.status is UnitStatus.IN_PROGRESS:
                self._delay(unit, now)
            elif not self._serial:
                self._again.append(unit)
            elif result.status is UnitStatus.FAILED:
                self._fail(unit, result.cause)
            else:
                unsettled.append(unit)
        not_tried = list(self._running.values())
        if self._alone_since is not None:
            self._delayed.update({unit.tid: replace(self._delayed[unit.tid], due=now) for unit in not_tried})
        elif self._serial:
            self._again.extend(not_tried)
        else:
            self._wait(not_tried)
        self._wait(unsettled)
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
        self._waiting = deque(unit for unit in self._waiting if unit.tid != tid)
        self._again = [unit for unit in self._again if unit.tid != tid]
        if self._in_front is not None and self._in_front.tid == tid:
            self._in_front = None
        held_others = [held.pop(tid, None) for held in (self._failed, self._blocked, self._delayed)]
        if any(held_others):
            self._release()

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
            if self._may_run(unit):
                chosen.append(unit)
                deltas += unit.count
        return chosen

    def _may_run(self, unit: PendingUnit) -> bool:
        """Examines a unit; returns whether nothing holds it back, else it is blocked."""
        blocker = self._holders.find(unit)
        if blocker is not None and not (unit.overtakes and self._passes_failed(unit)):
            self._block(unit, blocker)
            return False
        self._unreported.examined(unit.tid)
        return True

    def _due(self, now: float) -> list[PendingUnit]:
        """Returns the delayed units to be tried now, in log order."""
        if now < self._rests_until and self._waiting:
            return []
        longest = sorted((delay.due, tid) for tid, delay in self._delayed.items() if delay.due is not None)
        chosen = sorted(tid for due, tid in longest[:MAX_DELAYED] if due <= now)
        for tid in chosen:
            self._delayed[tid].due = None
        units = [self._delayed[tid].unit for tid in chosen]
        # A unit that a person retries may conflict now; then the delayed one waits for its turn.
        early = [unit for unit in units if self._waits_behind_another(unit)]
        self._wait(early)
        return [unit for unit in units if unit not in early]

    def _waits_behind_another(self, unit: PendingUnit) -> bool:
        before = takewhile(lambda other: other.tid < unit.tid, self._waiting)
        return any(not _comparable(other, unit) or conflict(other, unit) for other in before)

    def _all_wait_for(self, unit: PendingUnit, now: float) -> bool:
        """Returns whether all units wait for a busy one, which is tried again after a pause."""
        if not self._prefix or unit.tid in self._delayed:
            return False
        front = self._in_front
        if front is None or front.tid != unit.tid:
            front = self._in_front = _InFront(unit.tid, now, 0, now)
        front.failures += 1
        front.due = now + _IN_FRONT.after(front.failures)
        return now < front.since + PATIENCE or self._policy is OnFailure.STOP

    def _delay(self, unit: PendingUnit, now: float) -> None:
        failures = self._delayed[unit.tid].failures + 1 if unit.tid in self._delayed else 1
        self._delayed[unit.tid] = _Delay(unit, failures, now + DELAYS.after(failures))
        self._holders.add(unit)

    def _delay_is_over(self, tid: int) -> None:
        if self._delayed.pop(tid, None) is not None:
            self._release()

    def _passes_failed(self, unit: PendingUnit) -> bool:
        """Returns whether no other unit than the failed ones that it conflicts with holds a correction back."""
        passed = {tid for tid, (failed, _) in self._failed.items() if tid < unit.tid and conflict(failed, unit)}
        rest = Holders(self._schemes)
        held = {tid: unit for tid, (unit, _) in self._blocked.items()}
        held |= {tid: unit for tid, (unit, _) in self._failed.items() if tid not in passed}
        held |= {tid: delay.unit for tid, delay in self._delayed.items()}
        for tid, other in sorted(held.items()):
            if tid in self._failed or tid in self._delayed or rest.find(other) is not None:
                rest.add(other)
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
        self._delay_is_over(result.tid)

    def _fail(self, unit: PendingUnit, cause: str | None) -> None:
        self._failed[unit.tid] = (unit, cause)
        self._overtaken.pop(unit.tid, None)
        self._unreported.changed(unit.tid)
        if self._policy is not OnFailure.SKIP:
            self._holders.add(unit)
        self._delay_is_over(unit.tid)

    def _block(self, unit: PendingUnit, blocker: int) -> None:
        if self._in_front is not None and self._in_front.tid == unit.tid:
            self._in_front = None
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
        for delay in self._delayed.values():
            self._holders.add(delay.unit)
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
