"""Runs the micro-batches of an apply job on the target, each under a fence of its own.

A fence has the job's generation and a number; the target lets a task commit only while the task's fence is the
latest one. Each number is used once, also for a call whose answer was lost:

======================  ====================================================================================
step                    the step's fence
======================  ====================================================================================
begin a micro-batch     shuts out the tasks of all earlier micro-batches, which Spark may have given up
close a micro-batch     shuts out the tasks of this micro-batch, before a unit fails for good; those of all earlier
                        micro-batches, before a unit is discarded that may be in one of them
trim acknowledgements   shuts out all tasks, before the target forgets what it has applied
note the common mark    shuts out all tasks; so neither an older job notes it, nor one whose target went back
give up tables          shuts out all tasks, before another log may take a table that this log's file names no more
======================  ====================================================================================

Each step tells the target the latest fence that it has confirmed, with the units that were committed under it, so that
a target that was set back is noticed before anything is written to it (:mod:`kainite_spark.targets.mark`).

A crash forgets these numbers: the next job raises the generation, and begins with number 1.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kainite.base.errors import KainiteError, TargetFencedError
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.observe import metric
from kainite_spark.driver.environment import ApplyEnvironment
from kainite_spark.driver.job_metrics import JobMetrics
from kainite_spark.driver.payloads import Payloads
from kainite_spark.plan.micro_batch import TaskResult, plan
from kainite_spark.plan.selection import Selection
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.mark import TargetMark


@dataclass(frozen=True, slots=True)
class MicroBatchRun:
    """The result of a micro-batch.

    Attributes:
        results: the tasks' reports.
        outcomes: the units' outcomes; a unit without an outcome was not tried, or its outcome is unknown.
        problem: the first error that is not a unit's fault; None without such an error.
        spark_s: how long the Spark job took, in seconds.
    """

    results: Sequence[TaskResult]
    outcomes: Sequence[Outcome]
    problem: KainiteError | None
    spark_s: float = 0.0


class MicroBatches:
    """The micro-batches of one apply job, which has fenced the target with its generation.

    Args:
        environment: has the target, and the runner of the tasks.
        generation: the generation of the apply job.
        payloads: the deltas that the feed has brought.
        metrics: counts the tasks' results.
    """

    def __init__(self, environment: ApplyEnvironment, generation: int, payloads: Payloads, metrics: JobMetrics) -> None:
        self._environment = environment
        self._generation = generation
        self._payloads = payloads
        self._metrics = metrics
        self._target = environment.target
        self._number = 0
        self._mark = TargetMark(generation, -1)

    @property
    def mark(self) -> TargetMark:
        """Returns how far the target has come under this job."""
        return self._mark

    def raise_generation(self, mark: TargetMark | None) -> None:
        """Shuts out every older apply job.

        Args:
            mark: how far the log says that the target has come; None where it does not matter.
        """
        self._target.raise_generation(self._environment.ledger, self._generation, mark)

    def run(self, selection: Selection, only: Mapping[int, tuple[str, ...]] | None = None) -> MicroBatchRun:
        """Runs a micro-batch; each FAILED outcome of a serial one is final.

        Args:
            selection: its units.
            only: the tables of this target, for each of the units that has tables in another target too.
        """
        fence = self._fresh_fence()
        parallelism = self._environment.runner.parallelism
        instances = self._environment.settings.instances or parallelism
        batch = self._payloads.given(plan(fence, selection, instances, parallelism))
        batch = replace(batch, only=only or {})
        try:
            self._target.begin_micro_batch(fence, self._mark)
            self._confirmed(fence)
            began = time.monotonic()
            with self._metrics.timing(metric.RUN_TIME):
                results = self._environment.runner.run(batch)
            spark_s = time.monotonic() - began
        except KainiteError as error:
            return MicroBatchRun((), (), error)
        problem = next((result.problem for result in results if result.problem), None)
        outcomes = [outcome for result in results for outcome in result.outcomes]
        committed = tuple(outcome.tid for outcome in outcomes if outcome.status is UnitStatus.COMMITTED)
        self._mark = replace(self._mark, tids=committed)
        if isinstance(problem, TargetFencedError):
            problem = self._why_fenced(problem)
        if selection.serial:
            outcomes, problem = self._certain(outcomes, problem)
        return MicroBatchRun(results, outcomes, problem, spark_s)

    def close(self, tids: Collection[int]) -> set[int]:
        """Shuts out all tasks, so that no unit is applied any more; returns which of these units are applied."""
        fence = self._fresh_fence()
        applied = self._target.close_micro_batch(fence, tids, self._mark)
        self._confirmed(fence)
        return applied

    def read_catalogue(self, stop: threading.Event) -> None:
        """Reads the target's catalogue again, and uses it from now on; ``stop`` ends the wait for the read."""
        current = self._environment.current
        target = current.read_again(stop) if current is not None else None
        if target is not None:
            self._target.close()
            self._target = target

    def trim(self, oldest: int) -> None:
        """Deletes the acknowledgements of units below ``oldest``.

        Such a unit is durably resolved, in the log or in the outcomes partition, so no apply job will try it again. A
        task that Spark has given up might try it, but the fence shuts this task out.
        """
        fence = self._fresh_fence()
        self._target.trim(fence, oldest, self._mark)
        self._confirmed(fence)

    def settle_tables(self) -> None:
        """Takes the log's tables, and frees those that the log has and its settings file names no more.

        The job took its tables when it began. Until it was its turn, tables may have come, and a job with another
        settings file may have given one up, to another log.

        Raises:
            CatalogueError: another log has one of them.
        """
        if self._environment.tables is not None:
            taking = self._environment.tables()
            self._target.take_tables(taking)
            fence = self._fresh_fence()
            self._target.give_up_tables(fence, taking, self._mark)
            self._confirmed(fence)

    def prepare_common_mark(self) -> None:
        """Makes the target ready for :meth:`note_common_mark`."""
        self._target.prepare_common_mark()

    def note_common_mark(self, everywhere_below: int) -> None:
        """Notes in the target that each unit below an id is applied or discarded in each of several targets."""
        fence = self._fresh_fence()
        self._target.note_common_mark(fence, everywhere_below, self._mark)
        self._confirmed(fence)

    def _certain(
        self, outcomes: list[Outcome], problem: KainiteError | None
    ) -> tuple[list[Outcome], KainiteError | None]:
        """Returns the outcomes of units that are about to fail for good, once no task can apply them any more.

        A task that was given up may still run, and the target may now take a unit that it refused in the retry. Once
        the fence is closed, the acknowledgements tell which units are committed; if they cannot be read, only the
        outcomes that say so are certain.
        """
        if not any(outcome.status is UnitStatus.FAILED for outcome in outcomes):
            return outcomes, problem
        refused = [outcome.tid for outcome in outcomes if outcome.status is not UnitStatus.COMMITTED]
        try:
            applied = self.close(refused)
        except KainiteError as error:
            return [outcome for outcome in outcomes if outcome.status is UnitStatus.COMMITTED], error
        return [Outcome(o.tid, UnitStatus.COMMITTED, o.instance) if o.tid in applied else o for o in outcomes], problem

    def _why_fenced(self, problem: TargetFencedError) -> KainiteError:
        """Returns why a task's fence is not the target's: another apply job took over, or the target went back."""
        try:
            self.close(())
        except KainiteError as error:
            return problem if error.retryable else error
        return problem

    def _confirmed(self, fence: Fence) -> None:
        self._mark = TargetMark(fence.generation, fence.micro_batch)

    def _fresh_fence(self) -> Fence:
        """Returns a fence with a number that no call has used before, not even a call whose answer was lost."""
        self._number += 1
        return Fence(self._environment.ledger, self._generation, self._number)
