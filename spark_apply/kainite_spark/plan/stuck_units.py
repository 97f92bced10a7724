"""The units that are stuck, failed, delayed or blocked, and the question whether one of them holds a unit back. Pure.

Invariants:

* a failed or delayed unit holds back each later unit that it conflicts with; the later unit is then *blocked*, and
  holds back others in its turn;
* a correction or reversal passes the failed units that it replaces, of which it certainly writes a row
  (:mod:`kainite.log.state.corrections`), provided that no other unit holds it back, not even a failed one that it may
  touch. When it commits, those failed units are discarded, and only then the units that they held back are examined
  again; when it fails, nothing changes for them. So it takes the failed units' place in the order: a unit that was
  blocked behind one of them comes earlier in the log and is applied later, and writes over what the correction wrote
  where both write a row. Every other pair of units that conflict keeps the log's order, the units that were blocked
  among themselves too;
* with ``onUowFailure=skip`` a failed unit holds back no other, and only delayed units do. A correction that commits
  discards the failed units that it replaces, as with the other policies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kainite.log.format.entry import UnitStatus
from kainite.log.state.unit_state import UnitState
from kainite.settings import OnFailure
from kainite.uow.conflicts import ReadWriteSets
from kainite.uow.scheme import Comparisons
from kainite_spark.plan.busy_units import DelayedUnits
from kainite_spark.plan.holders import Holders
from kainite_spark.plan.passing import Passing
from kainite_spark.plan.unreported import StatusAndCause


class StuckUnits:
    """The failed, delayed and blocked units, by transaction id.

    Args:
        units: the folded log's units, by transaction id.
        policy: whether a failed unit holds back units that conflict with it.

    Attributes:
        failed: the failed units, with their causes.
        delayed: the delayed units.
        blocked: the blocked units, each with the unit that it waits for.
        schemes: the schemes that units name.
        passing: which failed units the corrections pass.
    """

    def __init__(self, units: Mapping[int, UnitState], policy: OnFailure) -> None:
        self._units = units
        self._policy = policy
        self.failed: dict[int, str | None] = {}
        self.delayed = DelayedUnits()
        self.blocked: dict[int, int] = {}
        self.schemes = Comparisons()
        self.passing = Passing(units, self.schemes)
        self._holders = Holders(self.schemes)

    def __iter__(self) -> Iterator[int]:
        yield from self.delayed
        yield from self.failed
        yield from self.blocked

    def blocker_of(self, unit: UnitState) -> int | None:
        """Returns the stuck unit that a unit has to wait for; None if it may run, and passes what it replaces."""
        # A failed unit that it passed before may have been judged anew, and fails then without conflicting with it.
        self.passing.end(unit.tid)
        replaced = self.passing.replaced(unit, self.failed)
        blocker = self._holders.find(unit)
        if blocker is not None and replaced:
            blocker = self._without(replaced).find(unit)
        if blocker is None:
            self.passing.begin(unit, replaced)
        return blocker

    def pass_replaced(self, unit: UnitState) -> None:
        """Notes that a unit passes the failed units that it replaces: it is committed already."""
        self.passing.begin(unit, self.passing.replaced(unit, self.failed))

    def fail(self, tid: int, cause: str | None) -> None:
        """Notes that a unit has failed."""
        self.failed[tid] = cause
        self.passing.end(tid)
        if self._policy is not OnFailure.SKIP:
            self._holders.add(self._units[tid])

    def delay(self, tid: int, now: float) -> None:
        """Notes that the target was busy with a unit."""
        self.delayed.delay(tid, now)
        self._holders.add(self._units[tid])

    def block(self, unit: UnitState, blocker: int) -> None:
        """Notes that a unit waits for another one; it is not delayed any more."""
        self.delayed.remove(unit.tid)
        self.blocked[unit.tid] = blocker
        self._holders.add(unit)

    def widen(self, tid: int, more: ReadWriteSets) -> None:
        """Makes a failed unit hold back further units; does nothing for any other unit."""
        if tid in self.failed and self._policy is not OnFailure.SKIP:
            self._holders.widen(self._units[tid], more)

    def overtaken_by(self, tid: int) -> list[int]:
        """Returns the failed units that a unit replaces, which has committed; they are not failed any more."""
        overtaken = [passed for passed in self.passing.end(tid) if passed in self.failed]
        for passed in overtaken:
            del self.failed[passed]
        return overtaken

    def left_by(self, unit: UnitState) -> str | None:
        """Returns the cause of a committed correction that has left failed units which it may touch; else None."""
        return self.passing.left(unit, self.failed) if self.failed else None

    def end_delay(self, tid: int) -> bool:
        """Returns whether a unit was delayed, which it is no more; then :meth:`release` must be called."""
        return self.delayed.remove(tid)

    def remove(self, gone: Iterable[int]) -> bool:
        """Takes units out; returns whether one of them held others back, so that :meth:`release` must be called."""
        held_others = [tid for tid in gone if tid in self.failed or tid in self.blocked or tid in self.delayed]
        for tid in held_others:
            self.failed.pop(tid, None)
            self.blocked.pop(tid, None)
            self.delayed.remove(tid)
        return bool(held_others)

    def release(self) -> Collection[int]:
        """Returns the units that were blocked, which are not any more: each is to be examined again."""
        released, self.blocked = self.blocked, {}
        self._holders = Holders(self.schemes)
        for tid in (*self._failing, *self.delayed):
            self._holders.add(self._units[tid])
        return released

    def status(self, tid: int) -> StatusAndCause | None:
        """Returns the status of a failed or blocked unit, and its cause; None for any other unit."""
        if tid in self.failed:
            return UnitStatus.FAILED, self.failed[tid]
        if tid in self.blocked:
            return UnitStatus.BLOCKED, self.passing.waits_for(tid, self.blocked[tid], self.failed)
        return None

    @property
    def _failing(self) -> Collection[int]:
        """Returns the failed units that hold others back."""
        return () if self._policy is OnFailure.SKIP else self.failed

    def _without(self, replaced: Collection[int]) -> Holders:
        """Returns the units that would hold others back if these failed units were discarded."""
        rest = Holders(self.schemes)
        stuck = {*self._failing, *self.delayed}.difference(replaced)
        for tid in sorted(stuck.union(self.blocked)):
            other = self._units[tid]
            if tid in stuck or rest.find(other) is not None:
                rest.add(other)
        return rest
