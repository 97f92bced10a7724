"""The units that wait for their turn: which of them run next, in which order, and up to which stop. Pure.

A unit waits in its place in the log, or *again*: it runs before all others, with those that are to be tried again too.

Invariants:

* the units of one choice have one scheme of signatures, so that each conflict among them shows in their signatures; a
  unit of another scheme begins another micro-batch. :mod:`kainite_spark.plan.holders` has the rule for units that hold
  others back;
* a unit that comes out of its turn (again or delayed) conflicts with no earlier waiting unit, else it waits behind that
  one. The earlier unit can be waiting because it was blocked or failed, and was released meanwhile;
* two corrections of one failed unit are never chosen together: once the first one has committed, the second one
  corrects nothing, and waits for the units that were blocked behind the failed one;
* no unit is chosen from the place in the log on at which applying is to stop.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from kainite.log.state.unit_state import UnitState
from kainite.uow.scheme import MIXED, Comparisons
from kainite_spark.plan.holders import Holders
from kainite_spark.plan.passing import Passing


class WaitingUnits:
    """The waiting units, by transaction id.

    Args:
        units: the folded log's units, by transaction id.
        schemes: the schemes that units name.
        passing: which failed units the corrections pass.
        may_run: examines a unit; returns whether no failed, delayed or blocked unit holds it back.
    """

    def __init__(
        self,
        units: Mapping[int, UnitState],
        schemes: Comparisons,
        passing: Passing,
        may_run: Callable[[UnitState], bool],
    ) -> None:
        self._units = units
        self._schemes = schemes
        self._passing = passing
        self._may_run = may_run
        self._in_place: deque[int] = deque()
        self._again: list[int] = []
        self._behind: Callable[[UnitState], bool] | None = None

    def __len__(self) -> int:
        return len(self._in_place) + len(self._again)

    def __iter__(self) -> Iterator[int]:
        yield from self._in_place
        yield from self._again

    @property
    def any_in_place(self) -> bool:
        """Tells whether units wait in their places in the log."""
        return bool(self._in_place)

    @property
    def oldest(self) -> int | None:
        """Returns the lowest transaction id; None without a unit."""
        return min((tids[0] for tids in (self._in_place, self._again) if tids), default=None)

    @property
    def first_behind_stop(self) -> int | None:
        """Returns the first unit where all units lie behind the stop; None where some unit does not."""
        if self._behind is None or self._again or not self._in_place:
            return None
        first = self._in_place[0]
        return first if self._behind(self._units[first]) else None

    def stop_before(self, behind: Callable[[UnitState], bool] | None) -> None:
        """Chooses no unit in its place from now on from the first one for which ``behind`` is true; None: any unit."""
        self._behind = behind

    def append(self, tid: int) -> None:
        """Adds a unit that comes behind all others in the log."""
        self._in_place.append(tid)

    def put(self, tids: Iterable[int]) -> None:
        """Puts units into their places in the log."""
        back = sorted(tids)
        if back:
            self._in_place = deque(heapq.merge(back, self._in_place))

    def put_again(self, tids: Iterable[int]) -> None:
        """Adds units that are to be tried again before all others."""
        self._again.extend(tids)
        self._again.sort()

    def remove(self, gone: Collection[int]) -> None:
        """Takes units out."""
        self._in_place = deque(tid for tid in self._in_place if tid not in gone)
        self._again = [tid for tid in self._again if tid not in gone]

    def take(self, max_units: int, max_deltas: int) -> list[UnitState]:
        """Takes out the first units in their places that may run, as many as fit a micro-batch.

        Args:
            max_units: the most units of a micro-batch.
            max_deltas: the most deltas of a micro-batch; a larger unit has one of its own.
        """
        chosen: list[UnitState] = []
        deltas = 0
        while self._in_place and len(chosen) < max_units:
            unit = self._units[self._in_place[0]]
            if self._behind is not None and self._behind(unit):
                break
            if chosen and (deltas + unit.count > max_deltas or not _comparable(chosen[0], unit)):
                break
            if self._passing.corrects_the_same(unit, chosen):
                break
            self._in_place.popleft()
            if self._may_run(unit):
                chosen.append(unit)
                deltas += unit.count
        return chosen

    def take_again(self) -> list[UnitState]:
        """Takes out the units that are to be tried again and may run, as :meth:`in_turn`."""
        again, self._again = self._again, []
        return self.in_turn(again)

    def in_turn(self, tids: Sequence[int]) -> list[UnitState]:
        """Examines units that run before those in their places; returns the ones that may run.

        A unit that conflicts with an earlier unit in its place waits behind that one from now on.

        Args:
            tids: the units' transaction ids, in log order.
        """
        ahead, chosen, late = Holders(self._schemes), list[UnitState](), list[int]()
        for tid in takewhile(lambda waiting: waiting < tids[-1], self._in_place if tids else ()):
            ahead.add(self._units[tid])
        for tid in tids:
            unit = self._units[tid]
            if self._waits_behind_another(unit, ahead) or self._passing.corrects_the_same(unit, chosen):
                late.append(tid)
                ahead.add(unit)
            elif self._may_run(unit):
                chosen.append(unit)
        self.put(late)
        return chosen

    def _waits_behind_another(self, unit: UnitState, ahead: Holders) -> bool:
        return ahead.find(unit) is not None


def _comparable(one: UnitState, other: UnitState) -> bool:
    """Returns whether a conflict of the units shows in their signatures; only such units share a micro-batch."""
    return one.scheme == other.scheme and one.scheme != MIXED
