"""Group commit: applies a job instance's units in groups, and finds the unit that the target refuses.

A group of consecutive units shares one target transaction. When the target refuses it, the group
is rolled back and bisected, in log order, until the refused unit is alone. That unit is tried once
more in its source's order; if the target refuses it again, it has failed. So a failed unit costs its
group about ``2·log2(group size)`` more transactions, and no other unit fails for it.

Changes of one row in a group are made as one (``ApplyOptions.fold``). The parts of a group that was refused are not
folded, so that the refused unit is found, with its cause, as if there were no folding.

A group that finds rows locked, or that is too large for the target (``TargetBusyError``), is cut in two like a refused
group. So is a group whose connection breaks in each try while the target answers a question. A unit that is busy
alone is *delayed*: its outcome is IN_PROGRESS with the cause, and the caller tries it again later. So that locked
rows do not hold up the job instance, the time for busy groups is limited (``ApplyOptions.busy_limit``): after it no
busy group is cut any more, and after twice that time nothing more is tried. Units that were not tried have no outcome.

A unit that conflicts with an earlier unit that is delayed or was not tried is not tried either, whatever the
policy: both will be applied, in this order. That rule comes before the next one, at the end of the call too: a unit
that was found blocked early, before the unit ahead of it was delayed, has no outcome.

A unit that conflicts with an earlier failed or blocked unit of the list is not tried: it is blocked, and its cause
names the unit that it waits for.

A unit with a fault, whose deltas cannot be read, counts as refused; the target is not asked.

:mod:`kainite_spark.executor.target_attempts` has what happens when the connection breaks, and what a crash leaves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kainite.base.errors import TargetBusyError
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.uow.conflicts import EarliestConflicts
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.executor.target_attempts import TargetAttempts, Trouble
from kainite_spark.targets.contract import TargetSession, Unit
from kainite_spark.targets.fence import Fence


@dataclass(slots=True)
class GroupCounts:
    """Counts the groups that were tried, and those that were cut in two."""

    groups: int = 0
    splits: int = 0


def apply_units(
    session: TargetSession,
    fence: Fence,
    units: Sequence[Unit],
    options: ApplyOptions | None = None,
    instance: int | None = None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    counts: GroupCounts | None = None,
) -> tuple[Outcome, ...]:
    """Applies one job instance's units.

    Args:
        session: the target.
        fence: the apply job and micro-batch that write.
        units: the units, in log order.
        options: sizes of groups, failure policy, retries.
        instance: the job instance's number, for the outcomes.
        sleep: waits the given number of seconds between tries.
        clock: returns seconds that only go forward.
        counts: counts the groups.

    Returns:
        An outcome for each unit that was tried or is blocked, in log order: committed (also by an earlier call),
        failed, blocked, or in progress with the cause that delays it. With ``stops`` units after the
        failed one were not tried.

    Raises:
        TargetFencedError: a newer apply job or micro-batch owns the target.
        TargetUnavailableError: the target was unavailable in the last of the tries.
    """
    run = _GroupCommit(session, fence, options or ApplyOptions(), instance, sleep, clock, counts or GroupCounts())
    return run.apply_all(units)


def groups(units: Sequence[Unit], most_units: int, most_bytes: int) -> list[list[Unit]]:
    """Returns runs of consecutive units within both limits; a unit beyond ``most_bytes`` is alone."""
    found: list[list[Unit]] = []
    size = 0
    for unit in units:
        if not found or len(found[-1]) == most_units or size + unit.size > most_bytes:
            found.append([])
            size = 0
        found[-1].append(unit)
        size += unit.size
    return found


@dataclass(frozen=True, slots=True)
class _UnitGroup:
    """Units that share a target transaction; if ``folded``, several changes of one row may be made as one."""

    units: Sequence[Unit]
    folded: bool


class _GroupCommit:
    """One call of :func:`apply_units`, whose arguments it takes.

    A unit's outcome is noted once: ``_attempts`` has the units that are committed, ``_outcomes`` those that are failed,
    blocked or delayed. Units that the call found failed or blocked are in ``_holders``, those that are delayed or were
    not tried in ``_postponed``.
    """

    def __init__(
        self,
        session: TargetSession,
        fence: Fence,
        options: ApplyOptions,
        instance: int | None,
        sleep: Callable[[float], None],
        clock: Callable[[], float],
        counts: GroupCounts,
    ) -> None:
        self._session = session
        self._fence = fence
        self._options = options
        self._instance = instance
        self._clock = clock
        self._counts = counts
        self._attempts = TargetAttempts(session, fence, options.retry, sleep)
        self._outcomes: dict[int, Outcome] = {}
        self._held: dict[int, Unit] = {}
        self._holders = EarliestConflicts()
        self._postponed = EarliestConflicts()
        self._busy = 0.0  # seconds that attempts at busy groups took
        self._stopped = False

    def apply_all(self, units: Sequence[Unit]) -> tuple[Outcome, ...]:
        """Applies the units; returns the outcomes, in log order."""
        self._attempts.acknowledge(units)
        todo = [unit for unit in units if unit.tid not in self._attempts.committed]
        found = groups(todo, self._options.group_units, self._options.group_bytes)
        stack = [_UnitGroup(units, self._options.fold) for units in reversed(found)]
        while stack and not self._stopped:
            stack.extend(self._apply(stack.pop()))
        self._forget_untimely(units)
        outcomes = (self._outcome(unit.tid) for unit in units)
        return tuple(outcome for outcome in outcomes if outcome is not None)

    def _outcome(self, tid: int) -> Outcome | None:
        """Returns a unit's outcome; None while it has none."""
        at_ms = self._attempts.committed.get(tid)
        if at_ms is None:
            return self._outcomes.get(tid)
        return Outcome(tid, UnitStatus.COMMITTED, self._instance, at_ms=at_ms)

    def _apply(self, group: _UnitGroup) -> list[_UnitGroup]:
        """Applies a group; returns the two halves if the target did not take it, the later half first."""
        ready = [unit for unit in group.units if not self._waits(unit) and not self._blocked(unit)]
        if not ready:
            return []
        self._counts.groups += 1
        folded = group.folded and len(ready) > 1
        trouble = self._attempt(ready, lambda rest: self._session.apply(self._fence, rest, folded=folded))
        if trouble is None:
            return []
        if len(ready) == 1:
            self._alone(ready[0], trouble)
            return []
        is_busy = isinstance(trouble, TargetBusyError)
        if is_busy and self._busy >= self._options.busy_limit:
            for unit in ready:
                self._postpone(unit)
            self._stopped = self._stopped or self._options.in_order
            return []
        self._counts.splits += 1
        middle = len(ready) // 2
        again = folded and is_busy
        return [_UnitGroup(ready[middle:], again), _UnitGroup(ready[:middle], again)]

    def _attempt(self, units: Sequence[Unit], act: Callable[[Sequence[Unit]], None]) -> Trouble | None:
        """Commits units by ``act``; returns the error if the target did not take them."""
        began = self._clock()
        trouble = self._attempts.commit(units, act)
        if isinstance(trouble, TargetBusyError):
            self._busy += self._clock() - began
            self._stopped = self._busy >= 2 * self._options.busy_limit
        return trouble

    def _alone(self, unit: Unit, trouble: Trouble) -> None:
        """Delays a busy unit; tries a refused unit once more, in the source's order."""
        again: Trouble | None = trouble
        if len(unit.deltas) > 1 and not isinstance(trouble, TargetBusyError):
            again = self._attempt((unit,), lambda rest: self._session.apply_in_source_order(self._fence, rest[0]))
        if again is None:
            return
        if isinstance(again, TargetBusyError):
            self._outcomes[unit.tid] = Outcome(unit.tid, UnitStatus.IN_PROGRESS, self._instance, str(again))
            self._postpone(unit)
            self._stopped = self._stopped or self._options.in_order
            return
        refusal, last = str(trouble), str(again)
        cause = last if last == refusal else f"{last} (in order of precedence: {refusal})"
        self._hold(unit, UnitStatus.FAILED, cause)
        self._stopped = self._stopped or self._options.in_order or self._options.stops

    def _forget_untimely(self, units: Sequence[Unit]) -> None:
        """Drops the outcome of each blocked unit that must also wait for a unit that will be tried again."""
        for unit in units:
            outcome = self._outcome(unit.tid)
            if outcome is None:
                self._postpone(unit)
            elif outcome.status is UnitStatus.BLOCKED and self._waits(unit):
                del self._outcomes[unit.tid]

    def _waits(self, unit: Unit) -> bool:
        """Returns whether an earlier unit that will be tried again conflicts; the unit is then not tried either."""
        waits = self._postponed.find(unit.tid, unit.written, unit.read) is not None
        if waits:
            self._postpone(unit)
        return waits

    def _postpone(self, unit: Unit) -> None:
        self._postponed.add(unit.tid, unit.written, unit.read)

    def _blocked(self, unit: Unit) -> bool:
        """Returns whether a failed or blocked unit holds a unit back, which then is blocked."""
        holder = self._holder(unit)
        if holder is not None:
            status = self._outcomes[holder.tid].status
            self._hold(unit, UnitStatus.BLOCKED, f"waits for unit {holder.tid} ({holder.uow}), which is {status}")
        return holder is not None

    def _holder(self, unit: Unit) -> Unit | None:
        """Returns the first earlier unit that is failed or blocked and conflicts with ``unit``.

        Units are held out of order: a group's blocked units are held before bisection finds its failed unit.
        """
        first = self._holders.find(unit.tid, unit.written, unit.read)
        return None if first is None else self._held[first]

    def _hold(self, unit: Unit, status: UnitStatus, cause: str) -> None:
        self._outcomes[unit.tid] = Outcome(unit.tid, status, self._instance, cause)
        self._held[unit.tid] = unit
        self._holders.add(unit.tid, unit.written, unit.read)
