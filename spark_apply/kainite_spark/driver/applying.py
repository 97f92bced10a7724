"""The part of a round that acts on the target: discards units, selects those of the next micro-batch, and runs it.

A person may discard a unit that is not failed, while a task has it or the target does not answer. Such a unit comes
into no micro-batch any more; before the next one begins, the fence is closed, and the target's acknowledgement alone
tells whether the unit is committed or discarded (:mod:`kainite.owner.requests`).

After a micro-batch in which the target refused a unit for the first time, the target's catalogue is read again
(:mod:`kainite_spark.driver.current_target`), so that no unit fails for an old one. Before units are selected, the job
may stand still for an instant where a comparison of source and target asks for that
(:mod:`kainite_spark.driver.stop_point`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable

from kainite.base.errors import TargetRejectedError
from kainite.base.logs import event
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.unit_fields import unit_fields
from kainite.observe import metric
from kainite.settings import OnFailure
from kainite_spark.driver.environment import ApplyEnvironment, ApplySummary
from kainite_spark.driver.follower import LogFollower
from kainite_spark.driver.job_metrics import JobMetrics
from kainite_spark.driver.micro_batches import MicroBatches, MicroBatchRun
from kainite_spark.driver.outcome_writer import OutcomeWriter
from kainite_spark.driver.stop_point import StopPoint
from kainite_spark.driver.trouble import MicroBatchTrouble
from kainite_spark.plan.backlog import Backlog
from kainite_spark.plan.selection import Selection

_LOG = logging.getLogger(__name__)

MAX_DELTAS = 50_000
"""The most deltas of a micro-batch; a unit with more deltas has a micro-batch of its own."""


class Applying:
    """Applies units of the backlog to the target, one micro-batch a call.

    Args:
        environment: has the settings, and the stops that comparisons ask for.
        generation: the apply job's generation.
        follower: has the backlog.
        micro_batches: run micro-batches, and close the fence.
        writer: makes outcomes durable.
        metrics: count the results.
        stop: ends waits.
        summary: counts the micro-batches.

    Attributes:
        trouble: the micro-batches that have failed in a row.
        stop_point: where the job stands still.
    """

    def __init__(
        self,
        environment: ApplyEnvironment,
        generation: int,
        follower: LogFollower,
        micro_batches: MicroBatches,
        writer: OutcomeWriter,
        metrics: JobMetrics,
        stop: threading.Event,
        summary: ApplySummary,
    ) -> None:
        self._settings = environment.settings
        self._follower = follower
        self._micro_batches = micro_batches
        self._writer = writer
        self._metrics = metrics
        self._stop = stop
        self._summary = summary
        self._is_stale = False  # whether the target's catalogue is to be read again
        self.trouble = MicroBatchTrouble(environment.health, stop)
        self.stop_point = StopPoint(environment.stops, generation)

    @property
    def _backlog(self) -> Backlog:
        return self._follower.backlog

    def doubt_catalogue(self) -> None:
        """Has the target's catalogue read again before the next micro-batch."""
        self._is_stale = True

    def try_some(self) -> int:
        """Discards, and applies a micro-batch of units; returns the number of units that were selected.

        Raises:
            TargetRejectedError: a unit has failed, and ``onUowFailure`` is ``stop``.
        """
        if self._is_stale:
            self._is_stale = False
            self._micro_batches.read_catalogue(self._stop)
        self._discard()
        self._stop_at_failure()
        selection = self._select()
        if selection.units:
            self._apply(selection)
        return len(selection.units)

    def _discard(self) -> None:
        """Resolves the units that a person discards, by what the target has acknowledged."""
        if not self._backlog.withdrawn:
            return
        withdrawn = dict(self._backlog.withdrawn)
        committed = self._micro_batches.close(withdrawn)
        self._backlog.settle_withdrawn(committed)
        for tid, cause in withdrawn.items():
            found = "unit was applied before it could be discarded" if tid in committed else "unit discarded"
            unit = self._follower.units[tid]
            event(_LOG, logging.WARNING, found, **unit_fields(unit.uow, tid, unit.tables), cause=cause)
        self._writer.write_all()

    def _stop_at_failure(self) -> None:
        if self._settings.on_failure is not OnFailure.STOP or not self._backlog.failed:
            return
        tid, cause = min(self._backlog.failed.items())
        raise TargetRejectedError(
            f"unit {self._follower.units[tid].uow} (transaction id {tid}) failed: {cause}; onUowFailure is stop: "
            "kainite uow retry or discard it, then start again"
        )

    def _select(self) -> Selection:
        """Selects the units of the next micro-batch; stands still before it where a comparison asks for that."""
        self.stop_point.look(self._backlog)
        selection = self._take()
        if not selection.units and self.stop_point.is_reached(self._backlog):
            self.stop_point.hold(self._backlog, self._closed, self._stop.wait)
            selection = self._take()
        self.stop_point.begins(selection.units)
        return selection

    def _take(self) -> Selection:
        return self._backlog.take(self._settings.max_units, MAX_DELTAS, time.monotonic())

    def _closed(self) -> int:
        """Shuts out all tasks; returns the number with which the fence is closed."""
        self._micro_batches.close(())
        return self._micro_batches.mark.micro_batch

    def _apply(self, selection: Selection) -> None:
        """Runs a micro-batch, and gives the outcomes of its units to the backlog."""
        started = time.monotonic()
        with self._metrics.timing(metric.MICRO_BATCH_TIME):
            run = self._micro_batches.run(selection, self._follower.only(selection.units))
        self._metrics.ran(run.results)
        self._backlog.settle(run.outcomes, time.monotonic())
        _tell_of_delays(selection, run.outcomes)
        self._report(selection, run, started)
        if not selection.serial and any(outcome.status is UnitStatus.FAILED for outcome in run.outcomes):
            self._micro_batches.read_catalogue(self._stop)
        if run.problem is None:
            self.trouble.passed()
            return
        known = {outcome.tid for outcome in run.outcomes}
        waits = [unit.tid for unit in selection.units if unit.tid not in known]
        self.trouble.meet(run.problem, self._backlog, waits)

    def _report(self, selection: Selection, run: MicroBatchRun, started: float) -> None:
        self._summary.micro_batches += 1
        self._writer.ran()
        statuses = Counter(outcome.status for outcome in run.outcomes)
        event(
            _LOG,
            logging.INFO,
            "micro-batch",
            number=self._summary.micro_batches,
            units=len(selection.units),
            deltas=sum(unit.count for unit in selection.units),
            instances=len(run.results),
            serial=selection.serial or None,
            committed=statuses[UnitStatus.COMMITTED],
            failed=statuses[UnitStatus.FAILED],
            delayed=statuses[UnitStatus.IN_PROGRESS] or None,
            blocked=statuses[UnitStatus.BLOCKED],
            ms=round((time.monotonic() - started) * 1000),
            spark_ms=round(run.spark_s * 1000),
        )


def _tell_of_delays(selection: Selection, outcomes: Iterable[Outcome]) -> None:
    units = {unit.tid: unit for unit in selection.units}
    for outcome in outcomes:
        if outcome.status is UnitStatus.IN_PROGRESS:
            unit = units[outcome.tid]
            about = unit_fields(unit.uow, unit.tid, unit.tables)
            event(_LOG, logging.WARNING, "unit delayed", **about, cause=outcome.cause)
