"""The backlog of unresolved units: selects the next micro-batch, holds units back behind failed ones. Pure.

Only the folded log has the facts of a unit (its entries, signatures, kind:
:class:`~kainite.log.state.unit_state.UnitState`). The backlog knows units by their transaction ids, keeps the state of
a unit in the apply job's rounds, and looks up all other facts when it needs them. So the caller must tell it of a
discard
before it calls any other method: the folded log has forgotten the unit by then.

States of a unit in the backlog, and the status that the log shows for it:

=========  ============  ==========================================================================
state      status        meaning
=========  ============  ==========================================================================
waiting    in progress   not examined yet, or to be examined again; in log order
running    in progress   in the current micro-batch
again      in progress   refused once, or blocked by a unit that was: these units alone are the next
                         micro-batch, in log order on one job instance
delayed    in progress   the target was busy with it alone (a locked row); holds back units that conflict,
                         whatever the policy, since it will be applied; tried again when its pause is over, in
                         a micro-batch of delayed units (:mod:`kainite_spark.plan.busy_units`). It stays delayed
                         while it runs, or is waiting or again for another reason
failed     failed        refused twice, or malformed in the log; holds back units that conflict
blocked    blocked       conflicts with an earlier failed, delayed or blocked unit
withdrawn  discarding    a person discards it, and it was not failed: it runs no more, and holds back nothing. Before
                         the next micro-batch the target tells whether it is committed or discarded
(gone)     committed, discarded
=========  ============  ==========================================================================

Transitions: waiting → running | blocked, again → running | blocked | waiting, and delayed → running | blocked | waiting
(:meth:`Backlog.take`); running → gone | delayed | again, and from a serial micro-batch → gone | delayed | failed |
again | waiting (:meth:`Backlog.settle`); failed → waiting (:meth:`Backlog.retry`) | gone (overtaken); any → gone
(:meth:`Backlog.forget_resolved`); any → withdrawn (:meth:`Backlog.withdraw`) → gone
(:meth:`Backlog.settle_withdrawn`); blocked → waiting whenever a failed or delayed unit goes away.

Invariants:

* each unit that is neither committed nor discarded is in one state, or delayed and running, waiting or again;
* units of one micro-batch have one scheme of signatures, so that each conflict among them shows in their signatures; a
  unit of another scheme begins another micro-batch. :mod:`kainite_spark.plan.holders` has the rule for units that hold
  others back;
* a unit runs only after it was examined: no earlier unit that it conflicts with is failed, delayed or blocked then. A
  unit that comes out of its turn (again or delayed) conflicts with no earlier waiting unit either, else it
  waits behind that one. The exception is a correction or reversal: it passes the failed units that it replaces, of
  which it certainly writes a row (:mod:`kainite.log.state.corrections`), provided that no other unit holds it back, not
  even a failed one that it may touch. When it commits, those failed units are discarded, and only then the
  units that they held back are examined again; when it fails, nothing changes for them. So it takes the failed units'
  place in the order: a unit that was blocked behind one of them comes earlier in the log and is applied later, and
  writes over what the correction wrote where both write a row. Every other pair of units that conflict keeps the
  log's order, the units that were blocked among themselves too. Two corrections of one failed unit never
  share a micro-batch: once the first one has committed, the second one corrects nothing, and waits for the units
  that were blocked behind the failed one;
* with ``onUowFailure=skip`` a failed unit holds back no other, and only delayed units do. A correction that commits
  discards the failed units that it replaces, as with the other policies;
* with ``targetConsistency=prefix`` one job instance applies all units in log order, and tries nothing behind a unit
  that is busy or refused before that unit was tried again. Busy units hold up all units behind them for
  :data:`~kainite_spark.plan.busy_units.PATIENCE` seconds in all, in which one is tried alone, and are delayed then;
  with ``onUowFailure=stop`` they hold them up as long as it takes;
* the whole state can be folded anew from the log: a crash loses only the notes that a unit was refused
  once, or was delayed, and the unit is tried again.

Examination is lazy: a micro-batch takes from the front and leaves the units behind untouched, so a
failure in front of a long backlog costs nothing until a unit's turn comes. For the same reason the
log shows a released unit as blocked until its turn comes.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from types import MappingProxyType

import msgspec

from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.unit_state import UnitState
from kainite.settings import Consistency, OnFailure
from kainite.uow.conflicts import ReadWriteSets
from kainite.uow.scheme import MIXED, Comparisons, Scheme
from kainite_spark.plan.busy_units import PATIENCE, DelayedUnits, UnitInFront
from kainite_spark.plan.holders import Holders
from kainite_spark.plan.passing import OVERTAKEN, Passing
from kainite_spark.plan.unreported import StatusAndCause, Unreported

# Looking a member up in its enum takes Python 3.11 0.1 µs.
_IN_PROGRESS, _COMMITTED = UnitStatus.IN_PROGRESS, UnitStatus.COMMITTED
_FAILED, _DISCARDING = UnitStatus.FAILED, UnitStatus.DISCARDING


@dataclass(frozen=True, slots=True)
class Selection:
    """The units of the next micro-batch, in log order.

    Attributes:
        units: the units.
        serial: whether one job instance applies all units.
        alone: whether each unit gets a target transaction of its own.
        in_order: whether one job instance applies all units, and tries none behind a busy or refused unit.
        chosen_at: the time at which the units were chosen, in seconds by the clock of :meth:`Backlog.take`.
    """

    units: tuple[UnitState, ...] = ()
    serial: bool = False
    alone: bool = False
    in_order: bool = False
    chosen_at: float = 0.0


class Backlog:
    """All units of the log that are neither committed nor discarded, and which of them may run next.

    Args:
        units: the folded log's units, by transaction id; the mapping changes with the folded log.
        policy: whether a failed unit holds back units that conflict with it.
        consistency: whether units are applied in log order, or only those that conflict.
    """

    def __init__(
        self,
        units: Mapping[int, UnitState],
        policy: OnFailure = OnFailure.BLOCK,
        consistency: Consistency = Consistency.CONFLICT,
    ) -> None:
        self._units = units
        self._policy = policy
        self._prefix = consistency is Consistency.PREFIX
        self._known: set[int] = set()  # in whatever state
        self._selection = Selection()
        self._waiting: deque[int] = deque()
        self._again: list[int] = []
        self._delayed = DelayedUnits()
        self._in_front = UnitInFront()
        self._failed: dict[int, str | None] = {}  # with the cause
        self._blocked: dict[int, int] = {}  # with the unit that it waits for
        self._schemes = Comparisons()
        self._holders = Holders(self._schemes)
        self._withdrawn: dict[int, str | None] = {}  # with who discards it
        self._passing = Passing(units, self._schemes)
        self._met: dict[int, str] = {}  # why the target did not take a unit in progress at its latest try
        self._unreported = Unreported()
        self._behind: Callable[[UnitState], bool] | None = None

    @property
    def waiting(self) -> int:
        """Returns how many units are waiting or to be tried again."""
        return len(self._waiting) + len(self._again)

    @property
    def delayed(self) -> int:
        """Returns how many units are delayed, or busy in front of all others."""
        return len(self._delayed) + (self._in_front.tid is not None)

    @property
    def oldest_waiting(self) -> int | None:
        """Returns the lowest transaction id that is waiting or to be tried again; None without one."""
        return min((tids[0] for tids in (self._waiting, self._again) if tids), default=None)

    @property
    def blocked(self) -> int:
        """Returns how many units wait for a failed or delayed unit."""
        return len(self._blocked)

    @property
    def failed(self) -> Mapping[int, str | None]:
        """Returns the causes of the failed units, by transaction id; changes with the backlog."""
        return MappingProxyType(self._failed)

    @property
    def withdrawn(self) -> Mapping[int, str | None]:
        """Returns the units of which the target has to tell whether they are committed or discarded."""
        return MappingProxyType(self._withdrawn)

    @property
    def at_stop(self) -> bool:
        """Tells whether only units are left to run that lie behind the stop, delayed units excepted."""
        if self._behind is None or self._again or self._in_front.tid is not None or not self._waiting:
            return False
        return self._behind(self._units[self._waiting[0]])

    def stop_before(self, behind: Callable[[UnitState], bool] | None) -> None:
        """Selects no waiting unit from now on from the first one for which ``behind`` is true; None: any unit."""
        self._behind = behind

    def in_front_of_stop(self) -> Iterator[tuple[UnitState, UnitStatus, str | None]]:
        """Yields the unresolved units in front of the stop with their statuses and causes, when :attr:`at_stop`."""
        for tid in sorted(tid for tid in self.unresolved() if tid < self._waiting[0]):
            yield self._units[tid], *self._status(tid)

    def know(self, scheme_id: str, scheme: Scheme) -> None:
        """Registers a scheme that units name."""
        self._schemes.add(scheme_id, scheme)

    def unresolved(self) -> Iterable[int]:
        """Yields the transaction ids of all units that are neither committed nor discarded, in no certain order."""
        yield from self._waiting
        yield from self._again
        yield from (unit.tid for unit in self._selection.units)
        yield from self._delayed
        yield from self._failed
        yield from self._blocked
        yield from self._withdrawn

    def add(self, tid: int, status: UnitStatus = _IN_PROGRESS, cause: str | None = None) -> None:
        """Adds a unit with its status in the log; units come in log order, each once."""
        self._known.add(tid)
        self._unreported.published(tid, status, cause)
        if status is _FAILED:
            self._fail(tid, cause)
        elif status is _DISCARDING:
            self._withdrawn[tid] = cause
        else:
            self._waiting.append(tid)

    def take(self, max_units: int, max_deltas: int, now: float = 0.0) -> Selection:
        """Selects the units of the next micro-batch; none when no unit can run at present.

        After it, :meth:`settle` must be called before any other method.

        Args:
            max_units: the most units of a micro-batch.
            max_deltas: the most deltas of a micro-batch; a larger unit has one of its own.
            now: the time in seconds, by a clock that only goes forward.
        """
        if self._in_front.pauses(now):
            return Selection()
        again, self._again = self._again, []
        serial = self._in_turn(again)
        due = [] if serial else self._in_turn(self._delayed.take_due(now, others_wait=bool(self._waiting)))
        # No unit may pass a locked row, so units that came along would be sent to the target in vain.
        most = max_units if self._in_front.tid is None else 1
        chosen = tuple(serial or due or self._select(most, max_deltas))
        self._selection = Selection(chosen, bool(serial), bool(due), self._prefix and not due, now)
        return self._selection

    def settle(self, results: Iterable[Outcome], now: float = 0.0) -> None:
        """Takes in the outcomes of the micro-batch; a unit without an outcome was not tried.

        Args:
            results: the outcomes; IN_PROGRESS for a unit that the target was busy with.
            now: the time in seconds, by the clock of :meth:`take`.
        """
        ran, self._selection = self._selection, Selection()
        not_tried = {unit.tid for unit in ran.units}
        waits: list[int] = []
        for result in results:
            not_tried.remove(result.tid)
            self._note(result)
            if result.status is _IN_PROGRESS and self._all_wait_for(result.tid, now):
                waits.append(result.tid)
                continue
            self._in_front.leave(result.tid)
            if result.status is _COMMITTED:
                self._commit(result)
            elif result.status is _IN_PROGRESS:
                self._delay(result.tid, now)
            elif not ran.serial:
                self._again.append(result.tid)
            elif result.status is _FAILED:
                self._fail(result.tid, result.cause)
            else:
                waits.append(result.tid)
        if ran.alone:
            self._delayed.ran(ran.chosen_at, now, not_tried)
        elif ran.serial:
            self._again.extend(not_tried)
        else:
            waits.extend(not_tried)
        self._wait(waits)
        self._again.sort()

    def waits_for(self, tids: Iterable[int], cause: str) -> None:
        """Notes why units of the latest micro-batch were not tried, or why their outcomes are unknown."""
        for tid in self._known.intersection(tids):
            self._note(Outcome(tid, _IN_PROGRESS, cause=cause))

    def withdraw(self, tid: int, cause: str | None) -> None:
        """Takes out a unit that a person discards: no task that begins from now on gets it.

        Args:
            tid: the unit; an unknown one is passed over, since it is resolved already.
            cause: who discards it.
        """
        if tid in self._known and tid not in self._withdrawn:
            self._drop({tid})
            self._withdrawn[tid] = cause

    def settle_withdrawn(self, committed: Collection[int]) -> None:
        """Resolves the withdrawn units: they are discarded, except those that the target has acknowledged."""
        withdrawn, self._withdrawn = self._withdrawn, {}
        for tid, cause in withdrawn.items():
            if tid in committed:
                self._passing.begin(unit := self._units[tid], self._passing.replaced(unit, self._failed))
                self._commit(Outcome(tid, _COMMITTED))
            else:
                self._known.discard(tid)
                self._unreported.resolved(Outcome(tid, UnitStatus.DISCARDED, cause=cause))

    def retry(self, tid: int) -> None:
        """Queues a failed unit for another try, with the units that it held back."""
        del self._failed[tid]
        self._unreported.forget(tid)
        self._release(tid)

    def widen(self, tid: int, more: ReadWriteSets) -> None:
        """Makes a failed unit hold back further units, because more of its parts have come.

        Args:
            tid: the unit.
            more: the new signatures.
        """
        if tid in self._failed and self._policy is not OnFailure.SKIP:
            self._holders.widen(self._units[tid], more)

    def forget_resolved(self, tids: Iterable[int]) -> None:
        """Forgets units that the log shows as committed or discarded; releases the units that waited for them alone.

        A person has discarded them, or a later apply job has resolved them. Unknown units are passed over.
        """
        gone = self._known.intersection(tids)
        self._known -= gone
        self._drop(gone)

    @property
    def may_wait(self) -> bool:
        """Tells whether :meth:`take_changes` may be called later: only commits would be told, and few."""
        return self._unreported.may_wait

    def take_changes(self) -> tuple[Outcome, ...]:
        """Returns the outcomes that the log does not show yet, in the order in which they came; each only once."""
        return self._unreported.take(self._status)

    def _drop(self, gone: Collection[int]) -> None:
        """Takes units out of every state; releases the units that waited for them alone."""
        for tid in gone:
            self._unreported.forget(tid)
            self._in_front.leave(tid)
            self._met.pop(tid, None)
            self._withdrawn.pop(tid, None)
        if gone:
            self._waiting = deque(tid for tid in self._waiting if tid not in gone)
            self._again = [tid for tid in self._again if tid not in gone]
        held_others = [tid for tid in gone if tid in self._failed or tid in self._blocked or tid in self._delayed]
        for tid in held_others:
            self._failed.pop(tid, None)
            self._blocked.pop(tid, None)
            self._delayed.remove(tid)
        if held_others:
            self._release()

    def _note(self, result: Outcome) -> None:
        """Notes the cause that a unit in progress has met; a unit with another outcome has none any more."""
        if result.status is _IN_PROGRESS and result.cause is not None:
            self._met[result.tid] = result.cause
            self._unreported.changed(result.tid)
        elif self._met.pop(result.tid, None) is not None:
            self._unreported.changed(result.tid)

    def _select(self, max_units: int, max_deltas: int) -> list[UnitState]:
        """Returns the first waiting units that nothing holds back, as many as fit a micro-batch."""
        chosen: list[UnitState] = []
        deltas = 0
        while self._waiting and len(chosen) < max_units:
            unit = self._units[self._waiting[0]]
            if self._behind is not None and self._behind(unit):
                break
            if chosen and (deltas + unit.count > max_deltas or not _comparable(chosen[0], unit)):
                break
            if self._passing.corrects_the_same(unit, chosen):
                break
            self._waiting.popleft()
            if self._may_run(unit):
                chosen.append(unit)
                deltas += unit.count
        return chosen

    def _in_turn(self, tids: Sequence[int]) -> list[UnitState]:
        """Examines units that run before the waiting units; returns the ones that no unit holds back.

        A unit that conflicts with an earlier waiting unit waits behind it from now on. The earlier unit can be waiting
        because it was blocked or failed, and was released while the others were about to be tried again.

        Args:
            tids: the units' transaction ids, in log order.
        """
        ahead, chosen, late = Holders(self._schemes), list[UnitState](), list[int]()
        for tid in takewhile(lambda waiting: waiting < tids[-1], self._waiting if tids else ()):
            ahead.add(self._units[tid])
        for tid in tids:
            unit = self._units[tid]
            if self._waits_behind_another(unit, ahead) or self._passing.corrects_the_same(unit, chosen):
                late.append(tid)
                ahead.add(unit)
            elif self._may_run(unit):
                chosen.append(unit)
        self._wait(late)
        return chosen

    def _waits_behind_another(self, unit: UnitState, ahead: Holders) -> bool:
        return ahead.find(unit) is not None

    def _may_run(self, unit: UnitState) -> bool:
        """Examines a unit; returns whether no unit holds it back, and otherwise blocks it."""
        # A failed unit that it passed before may have been judged anew, and fails then without conflicting with it.
        self._passing.end(unit.tid)
        replaced = self._passing.replaced(unit, self._failed)
        blocker = self._holders.find(unit)
        if blocker is not None and replaced:
            blocker = self._without(replaced).find(unit)
        if blocker is not None:
            self._block(unit, blocker)
            return False
        self._passing.begin(unit, replaced)
        self._unreported.examined(unit.tid)
        return True

    def _all_wait_for(self, tid: int, now: float) -> bool:
        """Returns whether all units wait for a busy unit, which is tried again after a pause."""
        if not self._prefix or tid in self._delayed:
            return False
        waited = self._in_front.busy(tid, now)
        return waited < PATIENCE or self._policy is OnFailure.STOP

    def _delay(self, tid: int, now: float) -> None:
        self._delayed.delay(tid, now)
        self._holders.add(self._units[tid])

    def _delay_is_over(self, tid: int) -> None:
        if self._delayed.remove(tid):
            self._release()

    def _without(self, replaced: Collection[int]) -> Holders:
        """Returns the units that would hold others back if these failed units were discarded."""
        rest = Holders(self._schemes)
        stuck = {*self._failing, *self._delayed}.difference(replaced)
        for tid in sorted(stuck.union(self._blocked)):
            other = self._units[tid]
            if tid in stuck or rest.find(other) is not None:
                rest.add(other)
        return rest

    @property
    def _failing(self) -> Collection[int]:
        """Returns the failed units that hold others back."""
        return () if self._policy is OnFailure.SKIP else self._failed

    def _commit(self, result: Outcome) -> None:
        self._known.discard(result.tid)
        unit = self._units[result.tid]
        overtaken = [tid for tid in self._passing.end(result.tid) if tid in self._failed]
        left = self._passing.left(unit, self._failed.keys() - overtaken) if self._failed else None
        self._unreported.resolved(result if left is None else msgspec.structs.replace(result, cause=left))
        for tid in overtaken:
            del self._failed[tid]
            self._known.discard(tid)
            self._unreported.resolved(Outcome(tid, UnitStatus.DISCARDED, cause=f"{OVERTAKEN} {result.tid}"))
        if overtaken:
            self._release()
        self._delay_is_over(result.tid)

    def _fail(self, tid: int, cause: str | None) -> None:
        self._failed[tid] = cause
        self._passing.end(tid)
        self._unreported.changed(tid)
        if self._policy is not OnFailure.SKIP:
            self._holders.add(self._units[tid])
        self._delay_is_over(tid)

    def _block(self, unit: UnitState, blocker: int) -> None:
        self._in_front.leave(unit.tid)
        self._delayed.remove(unit.tid)
        self._blocked[unit.tid] = blocker
        self._unreported.changed(unit.tid)
        self._holders.add(unit)

    def _release(self, *tids: int) -> None:
        """Queues units and all blocked units for examination, which blocks a unit again if it still has to wait."""
        released, self._blocked = self._blocked, {}
        self._holders = Holders(self._schemes)
        for tid in (*self._failing, *self._delayed):
            self._holders.add(self._units[tid])
        self._wait([*tids, *released])

    def _wait(self, tids: Iterable[int]) -> None:
        back = sorted(tids)
        if back:
            self._waiting = deque(heapq.merge(back, self._waiting))

    def _status(self, tid: int) -> StatusAndCause:
        if tid in self._failed:
            return _FAILED, self._failed[tid]
        if tid in self._blocked:
            return UnitStatus.BLOCKED, self._passing.waits_for(tid, self._blocked[tid], self._failed)
        return _IN_PROGRESS, self._met.get(tid)


def _comparable(one: UnitState, other: UnitState) -> bool:
    """Returns whether a conflict of the units shows in their signatures; only such units share a micro-batch."""
    return one.scheme == other.scheme and one.scheme != MIXED
