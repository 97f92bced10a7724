"""The backlog of unresolved units: selects the next micro-batch, and takes in what became of it. Pure.

Only the folded log has the facts of a unit (its entries, signatures, kind:
:class:`~kainite.log.state.unit_state.UnitState`). The backlog knows units by their transaction ids, keeps the state of
a unit in the apply job's rounds, and looks up all other facts when it needs them. So the caller must tell it of a
discard before it calls any other method: the folded log has forgotten the unit by then.

docs/state-machines.md has the states of a unit here, and the status that the log shows for each.
:mod:`kainite_spark.plan.waiting_units` has the units that are waiting or to be tried again,
:mod:`kainite_spark.plan.stuck_units` the failed, delayed and blocked ones.

Invariants, with those of the two modules:

* each unit that is neither committed nor discarded is in one state, or delayed and running, waiting or again;
* of a withdrawn unit the target tells before the next micro-batch whether it is committed or discarded;
* a unit runs only after it was examined: no earlier unit that it conflicts with is failed, delayed or blocked then,
  but failed ones that it replaces;
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

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

import msgspec

from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.unit_state import UnitState
from kainite.settings import Consistency, OnFailure
from kainite.uow.conflicts import ReadWriteSets
from kainite.uow.scheme import Scheme
from kainite_spark.plan.busy_units import PATIENCE, UnitInFront
from kainite_spark.plan.passing import OVERTAKEN
from kainite_spark.plan.selection import Selection
from kainite_spark.plan.stuck_units import StuckUnits
from kainite_spark.plan.unreported import StatusAndCause, Unreported
from kainite_spark.plan.waiting_units import WaitingUnits

# Looking a member up in its enum takes Python 3.11 0.1 µs.
_IN_PROGRESS, _COMMITTED = UnitStatus.IN_PROGRESS, UnitStatus.COMMITTED
_FAILED, _DISCARDING = UnitStatus.FAILED, UnitStatus.DISCARDING


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
        self._stuck = StuckUnits(units, policy)
        self._waiting = WaitingUnits(units, self._stuck.schemes, self._stuck.passing, self._may_run)
        self._in_front = UnitInFront()
        self._withdrawn: dict[int, str | None] = {}  # with who discards it
        self._unreported = Unreported()

    @property
    def waiting(self) -> int:
        """Returns how many units are waiting or to be tried again."""
        return len(self._waiting)

    @property
    def delayed(self) -> int:
        """Returns how many units are delayed, or busy in front of all others."""
        return len(self._stuck.delayed) + (self._in_front.tid is not None)

    @property
    def oldest_waiting(self) -> int | None:
        """Returns the lowest transaction id that is waiting or to be tried again; None without one."""
        return self._waiting.oldest

    @property
    def blocked(self) -> int:
        """Returns how many units wait for a failed or delayed unit."""
        return len(self._stuck.blocked)

    @property
    def failed(self) -> Mapping[int, str | None]:
        """Returns the causes of the failed units, by transaction id; changes with the backlog."""
        return MappingProxyType(self._stuck.failed)

    @property
    def withdrawn(self) -> Mapping[int, str | None]:
        """Returns the units of which the target has to tell whether they are committed or discarded."""
        return MappingProxyType(self._withdrawn)

    @property
    def at_stop(self) -> bool:
        """Tells whether only units are left to run that lie behind the stop, delayed units excepted."""
        return self._in_front.tid is None and self._waiting.first_behind_stop is not None

    def stop_before(self, behind: Callable[[UnitState], bool] | None) -> None:
        """Selects no waiting unit from now on from the first one for which ``behind`` is true; None: any unit."""
        self._waiting.stop_before(behind)

    def in_front_of_stop(self) -> Iterator[tuple[UnitState, UnitStatus, str | None]]:
        """Yields the unresolved units in front of the stop with their statuses and causes, when :attr:`at_stop`."""
        stop = self._waiting.first_behind_stop
        assert stop is not None, "no unit is at the stop"
        for tid in sorted(tid for tid in self.unresolved() if tid < stop):
            yield self._units[tid], *self._status(tid)

    def know(self, scheme_id: str, scheme: Scheme) -> None:
        """Registers a scheme that units name."""
        self._stuck.schemes.add(scheme_id, scheme)

    def unresolved(self) -> Iterable[int]:
        """Yields the transaction ids of all units that are neither committed nor discarded, in no certain order."""
        yield from self._waiting
        yield from (unit.tid for unit in self._selection.units)
        yield from self._stuck
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
        serial, due = self._waiting.take_again(), list[UnitState]()
        if not serial:
            waits = self._waiting.any_in_place
            due = self._waiting.in_turn(self._stuck.delayed.take_due(now, others_wait=waits))
        # No unit may pass a locked row, so units that came along would be sent to the target in vain.
        most = max_units if self._in_front.tid is None else 1
        chosen = tuple(serial or due or self._waiting.take(most, max_deltas))
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
        waits, again = list[int](), list[int]()
        for result in results:
            not_tried.remove(result.tid)
            self._unreported.met(result)
            if result.status is _IN_PROGRESS and self._all_wait_for(result.tid, now):
                waits.append(result.tid)
                continue
            self._in_front.leave(result.tid)
            if result.status is _COMMITTED:
                self._commit(result)
            elif result.status is _IN_PROGRESS:
                self._stuck.delay(result.tid, now)
            elif not ran.serial:
                again.append(result.tid)
            elif result.status is _FAILED:
                self._fail(result.tid, result.cause)
            else:
                waits.append(result.tid)
        if ran.alone:
            self._stuck.delayed.ran(ran.chosen_at, now, not_tried)
        else:
            (again if ran.serial else waits).extend(not_tried)
        self._waiting.put(waits)
        self._waiting.put_again(again)

    def waits_for(self, tids: Iterable[int], cause: str) -> None:
        """Notes why units of the latest micro-batch were not tried, or why their outcomes are unknown."""
        for tid in self._known.intersection(tids):
            self._unreported.met(Outcome(tid, _IN_PROGRESS, cause=cause))

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
                self._stuck.pass_replaced(self._units[tid])
                self._commit(Outcome(tid, _COMMITTED))
            else:
                self._known.discard(tid)
                self._unreported.resolved(Outcome(tid, UnitStatus.DISCARDED, cause=cause))

    def retry(self, tid: int) -> None:
        """Queues a failed unit for another try, with the units that it held back."""
        self._stuck.remove((tid,))
        self._unreported.forget(tid)
        self._release(tid)

    def widen(self, tid: int, more: ReadWriteSets) -> None:
        """Makes a failed unit hold back further units, because more of its parts have come.

        Args:
            tid: the unit.
            more: the new signatures.
        """
        self._stuck.widen(tid, more)

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
            self._unreported.drop(tid)
            self._in_front.leave(tid)
            self._withdrawn.pop(tid, None)
        if gone:
            self._waiting.remove(gone)
        if self._stuck.remove(gone):
            self._release()

    def _may_run(self, unit: UnitState) -> bool:
        """Examines a unit; returns whether no unit holds it back, and otherwise blocks it."""
        blocker = self._stuck.blocker_of(unit)
        if blocker is None:
            self._unreported.examined(unit.tid)
            return True
        self._in_front.leave(unit.tid)
        self._stuck.block(unit, blocker)
        self._unreported.changed(unit.tid)
        return False

    def _all_wait_for(self, tid: int, now: float) -> bool:
        """Returns whether all units wait for a busy unit, which is tried again after a pause."""
        if not self._prefix or tid in self._stuck.delayed:
            return False
        waited = self._in_front.busy(tid, now)
        return waited < PATIENCE or self._policy is OnFailure.STOP

    def _commit(self, result: Outcome) -> None:
        self._known.discard(result.tid)
        unit = self._units[result.tid]
        overtaken = self._stuck.overtaken_by(result.tid)
        left = self._stuck.left_by(unit)
        self._unreported.resolved(result if left is None else msgspec.structs.replace(result, cause=left))
        for tid in overtaken:
            self._known.discard(tid)
            self._unreported.resolved(Outcome(tid, UnitStatus.DISCARDED, cause=f"{OVERTAKEN} {result.tid}"))
        if self._stuck.end_delay(result.tid) or overtaken:
            self._release()

    def _fail(self, tid: int, cause: str | None) -> None:
        self._stuck.fail(tid, cause)
        self._unreported.changed(tid)
        if self._stuck.end_delay(tid):
            self._release()

    def _release(self, *tids: int) -> None:
        """Queues units and all blocked units for examination, which blocks a unit again if it still has to wait."""
        self._waiting.put([*tids, *self._stuck.release()])

    def _status(self, tid: int) -> StatusAndCause:
        return self._stuck.status(tid) or self._unreported.in_progress(tid)
