"""The apply job: follows the log, runs one micro-batch after the other, writes down what became of units.

One round, each step an effect on one of three places (the outcomes partition, which is ours alone; the
target; and, read only, the main log)::

    poll the log ─► choose units ─► let the micro-batch's fence in ─► run it ─► append outcomes ─► tidy up

What a crash between any two leaves behind, and what the next apply job makes of it:

======================  ==========================================================================
crash                   next start
======================  ==========================================================================
before the fence        nothing has happened
before or in the run    some units are in the target with their acknowledgements: they are tried
                        again, found applied, and reported as committed
before the outcomes     the same
after the outcomes      they are read back and laid over the log
while tidying           it is done again
======================  ==========================================================================

Two apply jobs at once: each raises the generation when it mounts the outcomes partition, then fences
the target with it. From then on no transaction of the older one commits, and no outcome of it is
appended; it stops with an error that says so.

What is away (the log's store, the target, Spark's executors) is waited for with growing pauses, and
no unit ever fails for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from kainite.base.errors import KainiteError, SparkUnavailableError, TargetRejectedError
from kainite.base.logs import event
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.owner.mount import LeaseWatch
from kainite.log.owner.upkeep import outcomes_partition
from kainite.log.store.contract import LogStore
from kainite.settings import ApplySettings, OnFailure
from kainite_spark.driver import patience
from kainite_spark.driver.follower import Follower
from kainite_spark.driver.outcomes import Outcomes, mount_outcomes
from kainite_spark.driver.patience import patiently
from kainite_spark.driver.runner import Runner
from kainite_spark.plan.backlog import Backlog, Selection
from kainite_spark.plan.micro_batch import TaskResult, plan
from kainite_spark.targets.contract import Target
from kainite_spark.targets.fence import Fence

_LOG = logging.getLogger(__name__)

MAX_DELTAS = 50_000
"""Most deltas of a micro-batch, unless a single unit has more."""

LONGEST_IDLE_S = 1.0
"""The longest pause between two looks at a log where nothing happens."""

SPARK_TRIES = 5
"""Spark jobs that fail one after the other before the apply job gives up: its session is broken."""

TIDY_EVERY = 50
"""Micro-batches after which acknowledgements and outcomes that nobody needs any more are deleted."""


@dataclass(frozen=True, slots=True)
class ApplyEnvironment:
    """What an apply job works with.

    Attributes:
        settings: its section of the settings.
        store: the log's store.
        partition: the main log's partition.
        owner: a name unlike that of any other apply job.
        target: where units go; prepared (:meth:`Target.prepare`).
        runner: runs the tasks.
        ledger: the log's name in the target, unlike that of any other log that is applied to it; transaction
            ids begin at 0 in each, so under one name the units of one would be taken for those of the other.
    """

    settings: ApplySettings
    store: LogStore
    partition: str
    owner: str
    target: Target
    runner: Runner
    ledger: str


@dataclass(slots=True)
class Summary:
    """What an apply job did: how many micro-batches, and what it wrote down of how many units."""

    micro_batches: int = 0
    outcomes: Counter[UnitStatus] = field(default_factory=Counter)


class ApplyJob:
    """Applies the units of one log partition to one target.

    Args:
        parts: what it works with.
        stop: set by whoever wants it to end; it ends after the micro-batch that runs.
        watch: what was seen of the outcomes partition's lease before.
    """

    def __init__(self, parts: ApplyEnvironment, stop: threading.Event, watch: LeaseWatch | None = None) -> None:
        self._parts = parts
        self._stop = stop
        self._watch = watch
        self.summary = Summary()

    def run(self, *, once: bool = False) -> None:
        """Apply units until stopped; with ``once``, until all that can be applied is.

        Raises:
            LogFencedError: another apply job mounted the outcomes partition.
            TargetFencedError: another apply job has fenced the target.
            TargetRejectedError: a unit failed, and ``onUowFailure`` is ``stop``.
            LogCorruptError: the log does not read back as written.
            SparkUnavailableError: Spark jobs fail again and again.
        """
        parts = self._parts
        name = outcomes_partition(parts.partition)
        mounted = mount_outcomes(parts.store, name, parts.owner, parts.settings.lease, self._stop, self._watch)
        if mounted is None:
            return
        with mounted as outcomes:
            rounds = _ApplyLoop(parts, outcomes, self._stop, self.summary)
            patiently(rounds.start, self._stop)
            rounds.run(once=once)


class _ApplyLoop:
    """The rounds of an apply job that holds its outcomes partition."""

    def __init__(self, parts: ApplyEnvironment, outcomes: Outcomes, stop: threading.Event, summary: Summary) -> None:
        self._parts = parts
        self._outcomes = outcomes
        self._stop = stop
        self._summary = summary
        self._held = Backlog(parts.settings.on_failure)
        self._follower = Follower(parts.store, parts.partition, self._held)
        self._number = 0
        self._failures = 0
        self._untidy = 0

    def start(self) -> None:
        """Fence the target, and learn what is unresolved. The order matters: nothing may commit behind our back."""
        self._parts.target.raise_generation(self._parts.ledger, self._outcomes.generation)
        self._read_anew()
        event(
            _LOG,
            logging.INFO,
            "apply job started",
            partition=self._parts.partition,
            generation=self._outcomes.generation,
            next_id=self._follower.next_id,
            waiting=self._held.waiting,
            failed=len(self._held.failed),
        )

    def _read_anew(self) -> None:
        """Forget what we know of units, and learn it from the log and from our own outcomes."""
        self._held = Backlog(self._parts.settings.on_failure)
        self._follower = Follower(self._parts.store, self._parts.partition, self._held)
        self._follower.start()
        self._follower.resume(self._outcomes.read_from(self._follower.through + 1))

    def run(self, *, once: bool) -> None:
        idle = self._parts.settings.idle
        pause = idle
        while not self._stop.is_set():
            if patiently(lambda: self._round(strong=once), self._stop):
                pause = idle
            elif once:
                break
            else:
                self._stop.wait(pause)
                pause = min(pause * 1.5, max(idle, LONGEST_IDLE_S))
        patiently(self._tidy, self._stop)

    def _round(self, *, strong: bool) -> bool:
        """One round; whether there were units to apply."""
        self._outcomes.check()
        if not self._follower.poll(strong=strong):
            event(_LOG, logging.WARNING, "log truncated before it was read, reading it anew", at=self._follower.next_id)
            self._read_anew()
        self._stop_at_failure()
        chosen = self._held.take(self._parts.settings.max_units, MAX_DELTAS)
        if chosen.units:
            self._micro_batch(chosen)
        self._write_down(self._held.take_changes())
        if self._untidy >= TIDY_EVERY or not chosen.units:
            self._tidy()
        return bool(chosen.units)

    def _write_down(self, news: tuple[Outcome, ...]) -> None:
        self._outcomes.append(news)
        # A unit that waits again, after a retry or for another one, is no result.
        results = [outcome for outcome in news if outcome.status is not UnitStatus.IN_PROGRESS]
        self._summary.outcomes.update(outcome.status for outcome in results)
        for outcome in results:
            if outcome.status is UnitStatus.FAILED and outcome.tid in self._held.failed:
                unit, cause = self._held.failed[outcome.tid]
                event(_LOG, logging.ERROR, "unit failed", uow=unit.uow, id=unit.tid, cause=cause)

    def _stop_at_failure(self) -> None:
        if self._parts.settings.on_failure is not OnFailure.STOP:
            return
        for tid, (unit, cause) in sorted(self._held.failed.items()):
            raise TargetRejectedError(
                f"unit {unit.uow} (transaction id {tid}) failed: {cause}; onUowFailure is stop: "
                "kainite uow retry or discard it, then start again"
            )

    def _micro_batch(self, chosen: Selection) -> None:
        self._number += 1
        started = time.monotonic()
        results, problem = self._apply(chosen)
        outcomes = [outcome for result in results for outcome in result.outcomes]
        self._held.settle(outcomes)
        self._report(chosen, results, outcomes, started)
        if problem is not None:
            self._bear(problem)
        else:
            self._failures = 0

    def _apply(self, chosen: Selection) -> tuple[list[TaskResult], KainiteError | None]:
        """What the tasks did, and what went wrong that is no unit's fault."""
        parts = self._parts
        instances = parts.settings.instances or parts.runner.parallelism
        batch = plan(self._fence, chosen, instances, parts.runner.parallelism)
        try:
            parts.target.begin_micro_batch(self._fence)
            results = parts.runner.run(batch)
        except KainiteError as error:
            return [], error
        return results, next((result.problem for result in results if result.problem), None)

    @property
    def _fence(self) -> Fence:
        return Fence(self._parts.ledger, self._outcomes.generation, self._number)

    def _bear(self, problem: KainiteError) -> None:
        """Wait after what may pass; raise what will not."""
        self._failures += 1
        lost_executor = isinstance(problem, SparkUnavailableError) and self._failures < SPARK_TRIES
        if not (problem.retryable or lost_executor):
            raise problem
        pause = patience.BACKOFF.after(self._failures)
        event(_LOG, logging.WARNING, "micro-batch to be tried again", cause=problem, pause=pause)
        self._stop.wait(pause)

    def _report(self, chosen: Selection, results: list[TaskResult], outcomes: list[Outcome], started: float) -> None:
        self._summary.micro_batches += 1
        self._untidy += 1
        statuses = Counter(outcome.status for outcome in outcomes)
        event(
            _LOG,
            logging.INFO,
            "micro-batch",
            number=self._number,
            units=len(chosen.units),
            deltas=sum(unit.count for unit in chosen.units),
            instances=len(results),
            serial=chosen.serial or None,
            committed=statuses[UnitStatus.COMMITTED],
            failed=statuses[UnitStatus.FAILED],
            blocked=statuses[UnitStatus.BLOCKED],
            ms=round((time.monotonic() - started) * 1000),
        )

    def _tidy(self) -> None:
        """Delete outcomes that the owner has taken over, and acknowledgements that nobody will ask for.

        A unit below the oldest unresolved one is resolved in the log or in our outcomes, durably, so no
        apply job will try it again.
        """
        if self._untidy:
            self._outcomes.truncate(self._follower.through + 1)
            oldest = min(self._held.unresolved(), default=self._follower.next_id)
            self._parts.target.trim(self._fence, oldest)
            self._untidy = 0
