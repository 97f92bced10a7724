"""Group commit: applies a job instance's units in groups, and finds the unit that the target refuses.

A group of consecutive units shares one target transaction. When the target refuses it, the group
is rolled back and bisected, in log order, until the refused unit is alone. That unit is tried once
more in its source's order; if the target refuses it again, it has failed. So a failed unit costs its
group about ``2·log2(group size)`` more transactions, and no other unit fails for it.

With the policy ``block``, a unit that conflicts with an earlier failed or blocked unit of the list is
not tried: it is blocked, and its cause names the unit that it waits for.

If the connection broke during a commit, the target is asked which units it has acknowledged before the
transaction is tried again. A crash of the process leaves what the target's transactions leave; the
next call with the same units continues from there.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kainite.base.errors import TargetRejectedError, TargetUnavailableError
from kainite.base.logs import event
from kainite.base.retry import Backoff, only, retry
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.uow.conflicts import EarliestConflicts
from kainite_spark.targets.contract import TargetSession, Unit
from kainite_spark.targets.fence import Fence

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retry:
    """How often an unavailable target is tried.

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
    """How a list of units is applied.

    Attributes:
        on_failure: ``block`` holds back later units that conflict with a failed one, ``skip`` lets
            them through, ``stop`` tries nothing after the first failure.
        group_units: at most so many units share a target transaction.
        retry: how often an unavailable target is tried.
    """

    on_failure: str = "block"
    group_units: int = 500
    retry: Retry = Retry()


def apply_units(
    session: TargetSession,
    fence: Fence,
    units: Sequence[Unit],
    options: ApplyOptions | None = None,
    instance: int | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Outcome, ...]:
    """Applies one job instance's units.

    Args:
        session: the target.
        fence: the apply job and micro-batch that write.
        units: in log order.
        options: groups, failure policy, retries.
        instance: the job instance's number, for the outcomes.
        sleep: waits so many seconds between tries.

    Returns:
        An outcome for each unit, in log order: committed (also by an earlier call), failed or
        blocked. With the policy ``stop`` the last outcome is that of the failed unit; units after it were not tried.

    Raises:
        TargetFencedError: a newer apply job or micro-batch owns the target.
        TargetUnavailableError: the target was unavailable in the last of the tries.
    """
    run = _GroupCommit(session, fence, options or ApplyOptions(), instance, sleep)
    run.acknowledge(units)
    todo = [unit for unit in units if unit.tid not in run.outcomes]
    size = run.options.group_units
    stack = [todo[start : start + size] for start in range(0, len(todo), size)][::-1]
    while stack and not run.stopped:
        stack.extend(run.apply(stack.pop()))
    return tuple(run.outcomes[unit.tid] for unit in units if unit.tid in run.outcomes)


@dataclass(slots=True)
class _GroupCommit:
    """One call of :func:`apply_units`; ``held`` and ``holders`` are its failed and blocked units."""

    session: TargetSession
    fence: Fence
    options: ApplyOptions
    instance: int | None
    sleep: Callable[[float], None]
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    held: dict[int, Unit] = field(default_factory=dict)
    holders: EarliestConflicts = field(default_factory=EarliestConflicts)
    stopped: bool = False

    def apply(self, group: Sequence[Unit]) -> list[list[Unit]]:
        """Applies a group; returns the two halves if the target refused it, the later half first."""
        ready = [unit for unit in group if not self._blocked(unit)]
        refusal = self._attempt(ready, lambda rest: self.session.apply(self.fence, rest)) if ready else None
        if refusal is None:
            return []
        if len(ready) == 1:
            self._alone(ready[0], refusal)
            return []
        middle = len(ready) // 2
        return [ready[middle:], ready[:middle]]

    def acknowledge(self, units: Sequence[Unit]) -> None:
        """Notes which units the target has acknowledged already."""
        self._patiently(lambda _: self._ask(units))

    def _attempt(self, units: Sequence[Unit], act: Callable[[Sequence[Unit]], None]) -> str | None:
        """Commits units by ``act``; returns the cause if the target refused them."""

        def once(attempt: int) -> None:
            if attempt:  # The try before may have committed although its answer was lost.
                self._ask(units)
            rest = [unit for unit in units if unit.tid not in self.outcomes]
            if rest:
                act(rest)

        try:
            self._patiently(once)
        except TargetRejectedError as refusal:
            return str(refusal)
        self._committed(units)
        return None

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
            tries=self.options.retry.tries,
            failed=failed,
        )

    def _alone(self, unit: Unit, refusal: str) -> None:
        """Tries a unit that was refused alone once more, in the source's order."""
        again: str | None = refusal
        if len(unit.deltas) > 1:
            again = self._attempt((unit,), lambda rest: self.session.apply_in_source_order(self.fence, rest[0]))
        if again is None:
            return
        cause = again if again == refusal else f"{again} (in order of precedence: {refusal})"
        self._hold(unit, UnitStatus.FAILED, cause)
        self.stopped = self.options.on_failure == "stop"

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
        for unit in units:
            self.outcomes[unit.tid] = Outcome(unit.tid, UnitStatus.COMMITTED, self.instance)
