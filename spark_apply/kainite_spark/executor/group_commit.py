"""Group commit: applies a job instance's units in groups, and finds the unit that the target refuses.

A group of consecutive units shares one target transaction. When the target refuses it, the group
is rolled back and bisected, in log order, until the refused unit is alone. That unit is tried once
more in its source's order; if the target refuses it again, it has failed. So a failed unit costs its
group about ``2·log2(group size)`` more transactions, and no other unit fails for it.

Changes of one row in a group are made as one (``ApplyOptions.fold``). The parts of a group that was refused are not
folded, so that the refused unit is found, with its cause, as if there were no folding.

A group that finds rows locked, or that is too large for the target (``TargetBusyError``), is cut in two as a refused
one is. A connection that is lost in each try, while the target answers a question, counts the same. A unit that is busy
alone is *delayed*: its outcome is IN_PROGRESS with the cause, and the caller tries it again later. So that locked
rows do not hold up the job instance, the time for busy groups is limited (``ApplyOptions.busy_limit``): after it no
busy group is cut any more, and after twice that time nothing more is tried. Units that were not tried have no outcome.

A unit that conflicts with an earlier unit that is delayed or was not tried is not tried either, whatever the
policy: both will be applied, in this order. That rule comes before the next one, at the end of the call too: a unit
that was found blocked early, before the unit ahead of it was delayed, has no outcome.

With the policy ``block``, a unit that conflicts with an earlier failed or blocked unit of the list is
not tried: it is blocked, and its cause names the unit that it waits for.

A unit with a fault, whose deltas cannot be read, counts as refused; the target is not asked.

If the connection broke during a commit, the target is asked which units it has acknowledged before the
transaction is tried again. A crash of the process leaves what the target's transactions leave; the
next call with the same units continues from there.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self, TypeAlias

from kainite.base.clock import epoch_ms
from kainite.base.errors import (
    TargetBusyError,
    TargetInterruptedError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite.base.logs import event
from kainite.base.retry import Backoff, only, retry
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.uow.conflicts import EarliestConflicts
from kainite_spark.targets.contract import TargetSession, Unit
from kainite_spark.targets.fence import Fence

_LOG = logging.getLogger(__name__)

_Trouble: TypeAlias = TargetRejectedError | TargetBusyError

_SUSPECT_TRIES = 2
"""Tries of a part of a group that has interrupted the target in all tries."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The retries of an unavailable target.

    Attributes:
        tries: attempts in all.
        first: seconds after the first failure; each further pause is twice as long.
        limit: the longest pause, in seconds.
    """

    tries: int = 6
    first: float = 0.1
    limit: float = 5.0

    @property
    def backoff(self) -> Backoff:
        """Returns the pauses between the tries."""
        return Backoff.doubling(self.first, self.limit)


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """The options for applying a list of units.

    Attributes:
        on_failure: ``block`` holds back later units that conflict with a failed one, ``skip`` lets
            them through, ``stop`` tries nothing after the first failure.
        group_units: at most so many units share a target transaction.
        group_bytes: at most so many bytes of deltas do; a larger unit goes alone.
        busy_limit: seconds of failed attempts at busy groups after which none is cut in two any more.
        retry: how often an unavailable target is tried.
        fold: whether changes of one row in a group may be made as one.
        in_order: nothing is tried behind a unit that is busy or refused, so that units that commit do so in log order.
    """

    on_failure: str = "block"
    group_units: int = 500
    group_bytes: int = 16 * 2**20
    busy_limit: float = 10.0
    retry: Retry = Retry()
    in_order: bool = False
    fold: bool = True

    def suited(self, *, alone: bool, in_order: bool) -> Self:
        """Returns the options for units that were busy alone before, or that are committed in log order."""
        return replace(self, group_units=1 if alone else self.group_units, in_order=in_order)


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
        units: in log order.
        options: groups, failure policy, retries.
        instance: the job instance's number, for the outcomes.
        sleep: waits so many seconds between tries.
        clock: seconds that only go forward.
        counts: groups are counted there.

    Returns:
        An outcome for each unit that was tried or is blocked, in log order: committed (also by an earlier call),
        failed, blocked, or in progress with the cause that delays it. With the policy ``stop`` units after the
        failed one were not tried.

    Raises:
        TargetFencedError: a newer apply job or micro-batch owns the target.
        TargetUnavailableError: the target was unavailable in the last of the tries.
    """
    counts = counts or GroupCounts()
    run = _GroupCommit(session, fence, options or ApplyOptions(), instance, sleep, clock, counts)
    run.acknowledge(units)
    todo = [unit for unit in units if unit.tid not in run.outcomes]
    found = groups(todo, run.options.group_units, run.options.group_bytes)
    stack = [_Group(units, run.options.fold) for units in reversed(found)]
    while stack and not run.stopped:
        stack.extend(run.apply(stack.pop()))
    run.forget_untimely(units)
    return tuple(run.outcomes[unit.tid] for unit in units if unit.tid in run.outcomes)


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
class _Group:
    """Units that are to share a target transaction; changes of one row may be made as one if they are ``folded``."""

    units: Sequence[Unit]
    folded: bool


@dataclass(slots=True)
class _GroupCommit:
    """One call of :func:`apply_units`.

    Attributes:
        held, holders: its failed and blocked units.
        postponed: its delayed units, and those that are not tried.
        busy: seconds that attempts at busy groups took.
        suspect: whether a group has interrupted a target that answers.
    """

    session: TargetSession
    fence: Fence
    options: ApplyOptions
    instance: int | None
    sleep: Callable[[float], None]
    clock: Callable[[], float]
    counts: GroupCounts
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    held: dict[int, Unit] = field(default_factory=dict)
    holders: EarliestConflicts = field(default_factory=EarliestConflicts)
    postponed: EarliestConflicts = field(default_factory=EarliestConflicts)
    busy: float = 0.0
    suspect: bool = False
    stopped: bool = False

    def apply(self, group: _Group) -> list[_Group]:
        """Applies a group; returns the two halves if the target did not take it, the later half first."""
        ready = [unit for unit in group.units if not self._waits(unit) and not self._blocked(unit)]
        self.counts.groups += bool(ready)
        folded = group.folded and len(ready) > 1
        trouble = (
            self._attempt(ready, lambda rest: self.session.apply(self.fence, rest, folded=folded)) if ready else None
        )
        if trouble is None:
            return []
        if len(ready) == 1:
            self._alone(ready[0], trouble)
            return []
        if isinstance(trouble, TargetBusyError) and self.busy >= self.options.busy_limit:
            for unit in ready:
                self._postpone(unit)
            self.stopped = self.stopped or self.options.in_order
            return []
        self.counts.splits += 1
        middle = len(ready) // 2
        again = folded and isinstance(trouble, TargetBusyError)
        return [_Group(ready[middle:], again), _Group(ready[:middle], again)]

    def forget_untimely(self, units: Sequence[Unit]) -> None:
        """Drops the outcome of each blocked unit that must also wait for a unit that will be tried again."""
        for unit in units:
            outcome = self.outcomes.get(unit.tid)
            if outcome is None:
                self._postpone(unit)
            elif outcome.status is UnitStatus.BLOCKED and self._waits(unit):
                del self.outcomes[unit.tid]

    def acknowledge(self, units: Sequence[Unit]) -> None:
        """Notes which units the target has acknowledged already."""
        self._patiently(lambda _: self._ask(units))

    def _attempt(self, units: Sequence[Unit], act: Callable[[Sequence[Unit]], None]) -> _Trouble | None:
        """Commits units by ``act``; returns the error if the target refused them, or was busy."""
        fault = next((unit.fault for unit in units if unit.fault is not None), None)
        if fault is not None:
            return TargetRejectedError(fault)
        began = self.clock()

        def once(attempt: int) -> None:
            if attempt:  # The try before may have committed although its answer was lost.
                self._ask(units)
            rest = [unit for unit in units if unit.tid not in self.outcomes]
            if rest:
                act(rest)

        try:
            self._patiently(once)
        except TargetRejectedError as refusal:
            return refusal
        except TargetBusyError as busy:
            return self._spent(began, busy)
        except TargetInterruptedError as interruption:
            if not self._answers(units):
                raise
            if any(unit.tid not in self.outcomes for unit in units):
                self.suspect = True
                return self._spent(began, TargetBusyError(str(interruption)))
        self._committed(units)
        return None

    def _spent(self, began: float, busy: TargetBusyError) -> TargetBusyError:
        self.busy += self.clock() - began
        self.stopped = self.busy >= 2 * self.options.busy_limit
        return busy

    def _answers(self, units: Sequence[Unit]) -> bool:
        """Returns whether the target tells which units it has, although it was interrupted each time by these units."""
        try:
            self._ask(units)
        except TargetUnavailableError:
            return False
        return True

    def _ask(self, units: Sequence[Unit]) -> None:
        applied = self.session.applied(self.fence.log_partition, [unit.tid for unit in units])
        self._committed([unit for unit in units if unit.tid in applied])

    def _patiently(self, act: Callable[[int], None]) -> None:
        """Calls ``act`` with the number of the try, from 0, until the target is available."""
        attempts = itertools.count()

        def failed(error: Exception, failures: int, pause: float) -> None:
            event(_LOG, logging.WARNING, "target unavailable", attempt=failures, cause=error)

        retry(
            lambda: act(next(attempts)),
            self.options.retry.backoff,
            wait=self.sleep,
            retryable=only(TargetUnavailableError),
            tries=min(self.options.retry.tries, _SUSPECT_TRIES) if self.suspect else self.options.retry.tries,
            failed=failed,
        )

    def _alone(self, unit: Unit, trouble: _Trouble) -> None:
        """Delays a unit that is busy; tries one that was refused once more, in the source's order."""
        again: _Trouble | None = trouble
        if len(unit.deltas) > 1 and not isinstance(trouble, TargetBusyError):
            again = self._attempt((unit,), lambda rest: self.session.apply_in_source_order(self.fence, rest[0]))
        if again is None:
            return
        if isinstance(again, TargetBusyError):
            self.outcomes[unit.tid] = Outcome(unit.tid, UnitStatus.IN_PROGRESS, self.instance, str(again))
            self._postpone(unit)
            self.stopped = self.stopped or self.options.in_order
            return
        refusal, last = str(trouble), str(again)
        cause = last if last == refusal else f"{last} (in order of precedence: {refusal})"
        self._hold(unit, UnitStatus.FAILED, cause)
        self.stopped = self.stopped or self.options.in_order or self.options.on_failure == "stop"

    def _waits(self, unit: Unit) -> bool:
        """Returns whether an earlier unit that will be tried again conflicts; the unit is then not tried either."""
        waits = self.postponed.find(unit.tid, unit.written, unit.read) is not None
        if waits:
            self._postpone(unit)
        return waits

    def _postpone(self, unit: Unit) -> None:
        self.postponed.add(unit.tid, unit.written, unit.read)

    def _blocked(self, unit: Unit) -> bool:
        holder = self._holder(unit) if self.options.on_failure == "block" else None
        if holder is not None:
            status = self.outcomes[holder.tid].status
            self._hold(unit, UnitStatus.BLOCKED, f"waits for unit {holder.tid} ({holder.uow}), which is {status}")
        return holder is not None

    def _holder(self, unit: Unit) -> Unit | None:
        """Returns the first earlier unit that is failed or blocked and conflicts with ``unit``.

        Units are held out of order: a group's blocked units are held before bisection finds its failed unit.
        """
        first = self.holders.find(unit.tid, unit.written, unit.read)
        return None if first is None else self.held[first]

    def _hold(self, unit: Unit, status: UnitStatus, cause: str) -> None:
        self.outcomes[unit.tid] = Outcome(unit.tid, status, self.instance, cause)
        self.held[unit.tid] = unit
        self.holders.add(unit.tid, unit.written, unit.read)

    def _committed(self, units: Sequence[Unit]) -> None:
        now = epoch_ms()
        for unit in units:
            self.outcomes[unit.tid] = Outcome(unit.tid, UnitStatus.COMMITTED, self.instance, at_ms=now)
