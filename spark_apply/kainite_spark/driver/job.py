"""The apply job: follows the log, runs one micro-batch after the other, and makes the units' outcomes durable.

Each step of a round acts on one of three places: the main log, which is only read; the target; the outcomes
partition, which this job alone writes::

    poll the log ─► discard ─► select units ─► advance the fence ─► run the micro-batch ─► append outcomes ─► tidy up

:mod:`kainite_spark.driver.micro_batches` does the steps from the fence to the run, and tidies up. After a round in
which the target refused a unit for the first time, the job reads the target's catalogue again
(:mod:`kainite_spark.driver.current_target`), so that no unit fails for an old one. Before it selects units, it may
stand still for an instant where a comparison of source and target asks for that
(:mod:`kainite_spark.driver.stop_point`).

A person may discard a unit that is not failed, while a task has it or the target does not answer. Such a unit comes
into no micro-batch any more; before the next one begins, the job closes the fence, and the target's acknowledgement
alone tells whether the unit is committed or discarded (:mod:`kainite.owner.requests`).

A person may pause the job (``kainite log pause``; :mod:`kainite.owner.pausing` has the states). The job reads the pause
as an entry of the log; until it reads the end of the pause, it follows the log and does none of the steps that act on
the target. A job that starts while the log is paused still fences the target, so that no older job applies anything.

A crash between two steps leaves this behind, and the next apply job does the following:

======================  ==========================================================================
crash                   next start
======================  ==========================================================================
before the fence        nothing has happened
before or in the run    some units are in the target with their acknowledgements: they are tried
                        again, found applied, and reported as committed
before the outcomes     the same as in the run; commits may wait for their outcomes (:data:`OUTCOMES_EVERY_S`)
after the outcomes      the outcomes are read back and laid over the folded log
before a unit fails     the fence is closed, or not: the unit is tried twice again
before a discard        the fence is closed, or not: the log shows the unit as discarding, so the target is
                        asked again
while tidying           the deletions are done again; the fence may be closed, which no task minds
======================  ==========================================================================

Two apply jobs at once: each raises the generation when it mounts the outcomes partition, then fences the
target with the new generation. From then on no transaction of the older job commits, and none of its
outcomes is appended; the older job stops with an error that says so.

If the log's store, the target or Spark's executors are away, the job waits with growing pauses; no unit
fails for that reason.
"""

from __future__ import annotations

import functools
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from kainite.base.errors import KainiteError, SparkStalledError, SparkUnavailableError, TargetRejectedError
from kainite.base.logs import event
from kainite.log.format.entry import OperationMeta, Outcome, UnitStatus
from kainite.log.state.operations import paused_in_words
from kainite.log.state.outcomes import outcomes_partition
from kainite.log.state.unit_fields import unit_fields
from kainite.observe import metric
from kainite.owner.mount import LeaseWatch
from kainite.settings import OnFailure
from kainite_spark.driver import patience
from kainite_spark.driver.common_mark import CommonMark
from kainite_spark.driver.environment import ApplyEnvironment, ApplySummary
from kainite_spark.driver.follower import LogFollower
from kainite_spark.driver.job_health import JobStage
from kainite_spark.driver.job_metrics import JobMetrics
from kainite_spark.driver.micro_batches import MicroBatches, MicroBatchRun
from kainite_spark.driver.outcomes import Outcomes, mount_outcomes
from kainite_spark.driver.pace import Pace
from kainite_spark.driver.patience import patiently
from kainite_spark.driver.payloads import Payloads
from kainite_spark.driver.prepared_watch import PreparedWatch
from kainite_spark.driver.stop_point import StopPoint
from kainite_spark.plan.backlog import Backlog, Selection
from kainite_spark.plan.passing import MAY_TOUCH, OVERTAKEN

_LOG = logging.getLogger(__name__)

MAX_DELTAS = 50_000
"""The most deltas of a micro-batch; a unit with more deltas has a micro-batch of its own."""

LONGEST_IDLE_S = 1.0
"""The longest pause, in seconds, between two polls of a log without news."""

SPARK_TRIES = 5
"""The number of failed Spark jobs in a row at which the apply job takes the Spark session for broken, and ends."""

TELL_EVERY_S = 60.0
"""The least time, in seconds, between two notes in the log of why units wait."""

TIDY_EVERY = 50
"""Micro-batches after which acknowledgements and outcomes without further use are deleted."""

REST_BEFORE_TIDYING_S = 5.0
"""The least time, in seconds, from one deletion to one that is made only because no unit waits."""

OUTCOMES_EVERY_S = 1.0
"""The least time, in seconds, from one append of outcomes to one that has a few commits alone. Each append costs the
job, the log's owner and the store two writes and two reads. Nothing waits for commits but the log's own room."""


class ApplyJob:
    """Applies the units of one log partition to one target.

    Args:
        environment: everything that the job works with.
        stop: set to end the job, which then ends after its current micro-batch.
        watch: the watch that has observed the outcomes partition's lease since before.
    """

    def __init__(self, environment: ApplyEnvironment, stop: threading.Event, watch: LeaseWatch | None = None) -> None:
        self._environment = environment
        self._stop = stop
        self._watch = watch
        self.summary = ApplySummary()

    def run(self, *, once: bool = False) -> None:
        """Applies units until stopped; with ``once``, until no unit is left that can be applied.

        Raises:
            LogFencedError: another apply job mounted the outcomes partition.
            TargetFencedError: another apply job has fenced the target.
            TargetWentBackError: the target lacks units that the log has as committed.
            TargetRejectedError: a unit failed, and ``onUowFailure`` is ``stop``.
            LogCorruptError: the log does not read back as written.
            SparkUnavailableError: Spark jobs failed :data:`SPARK_TRIES` times in a row.
            SparkStalledError: no task of a Spark job ran.
        """
        environment = self._environment
        name = outcomes_partition(environment.partition, environment.name)
        environment.health.enter(JobStage.STANDBY)
        mounted = mount_outcomes(
            environment.store, name, environment.owner, environment.settings.lease, self._stop, self._watch
        )
        if mounted is None:
            return
        environment.health.enter(JobStage.APPLYING)
        with mounted as outcomes:
            loop = _ApplyLoop(environment, outcomes, self._stop, self.summary)
            patiently(loop.start, self._stop)
            loop.run(once=once)


class _ApplyLoop:
    """The rounds of an apply job that has mounted its outcomes partition."""

    def __init__(
        self, environment: ApplyEnvironment, outcomes: Outcomes, stop: threading.Event, summary: ApplySummary
    ) -> None:
        self._environment = environment
        self._settings = environment.settings
        self._outcomes = outcomes
        self._stop = stop
        self._summary = summary
        self._metrics = JobMetrics(environment.meter)
        payloads = Payloads(self._settings.feed_bytes)
        new_backlog = functools.partial(
            Backlog, policy=self._settings.on_failure, consistency=self._settings.consistency
        )
        self._follower = LogFollower(
            environment.store, environment.partition, new_backlog, environment.feed, payloads, environment.name
        )
        self._micro_batches = MicroBatches(environment, outcomes.generation, payloads, self._metrics)
        self._common_mark = CommonMark(self._micro_batches.note_common_mark)
        self._prepared = PreparedWatch(environment, self._metrics, time.monotonic)
        self._stop_point = StopPoint(environment.stops, outcomes.generation)
        self._schemes = 0
        self._is_stale = False  # whether the target's catalogue is to be read again
        self._paused: OperationMeta | None = None
        self._failures = 0
        self._untidy = 0
        self._tidied = self._told_outcomes = -math.inf
        self._trouble_since = ""
        self._told = 0.0

    @property
    def _backlog(self) -> Backlog:
        return self._follower.backlog

    def start(self) -> None:
        """Fences the target, then reads which units are unresolved: afterwards no older job can commit a unit.

        Raises:
            TargetWentBackError: the target lacks units that the log has as committed.
        """
        mark = self._outcomes.read_mark()
        self._micro_batches.raise_generation(None if self._environment.adopts else mark)
        if self._environment.of_several:
            self._micro_batches.prepare_common_mark()
        self._read_log()
        event(
            _LOG,
            logging.INFO,
            "apply job started",
            partition=self._environment.partition,
            target=self._environment.name or None,
            generation=self._outcomes.generation,
            next_id=self._follower.next_id,
            waiting=self._backlog.waiting,
            failed=len(self._backlog.failed),
        )

    def _read_log(self) -> None:
        """Reads which units are unresolved from the main log and from the outcomes partition."""
        self._follower.start(self._outcomes.read_from)
        self._announce()

    def _announce(self) -> None:
        """Tells the log's owner of the outcomes that are durable."""
        if self._environment.feed is not None:
            self._environment.feed.outcomes_at(self._outcomes.last_id)

    def run(self, *, once: bool) -> None:
        """Runs rounds until stopped; with ``once``, until no unit is left that can be applied."""
        idle = self._settings.idle
        pause = idle
        pace = Pace(self._settings.pace)
        while not self._stop.is_set():
            began = time.monotonic()
            if units := patiently(lambda: self._round(strong=once), self._stop):
                pause = idle
                pace.begun(units, began)
                if not once and not self._backlog.waiting:
                    self._stop.wait(pace.pause(time.monotonic()))
            elif once and (self._paused or not self._backlog.delayed):
                break
            else:
                self._wait(min(pause, self._stop_point.longest_wait))
                pause = min(pause * 1.5, max(idle, LONGEST_IDLE_S))
        patiently(self._write_all_down, self._stop)
        patiently(self._tidy, self._stop)

    def _wait(self, seconds: float) -> None:
        """Waits before the next look for units; stops waiting if the feed brings some."""
        feed = self._environment.feed
        if feed is not None and feed.is_following:
            feed.wait(self._stop, seconds)
        else:
            self._stop.wait(seconds)

    def _round(self, *, strong: bool) -> int:
        """Runs one round; returns the number of units that it selected."""
        self._outcomes.check()
        self._prepared.look()
        self._poll(strong=strong)
        selected = 0 if self._hold() else self._try_some()
        if strong or not self._backlog.may_wait or time.monotonic() >= self._told_outcomes + OUTCOMES_EVERY_S:
            self._write_all_down()
        everywhere = self._follower.everywhere_below if self._environment.of_several else None
        self._metrics.sample(self._backlog, self._follower.next_id, everywhere)
        feed = self._environment.feed
        followed = feed is not None and feed.is_following
        self._metrics.followed(followed)
        if not self._failures:
            self._environment.health.round(len(self._backlog.failed), followed=followed)
        rested = time.monotonic() >= self._tidied + REST_BEFORE_TIDYING_S
        if self._untidy >= TIDY_EVERY or (not selected and rested):
            self._tidy()
        self._note_common_mark(now=strong)
        return selected

    def _hold(self) -> bool:
        """Returns whether a person has paused applying; tells of a pause that begins or ends."""
        pause = self._follower.pause
        if pause != self._paused:
            found = "applying goes on" if pause is None else "applying is paused"
            about = pause or self._paused
            event(_LOG, logging.WARNING, found, by=about.who if about else "", why=(about.why if about else "") or None)
            self._paused = pause
        self._metrics.paused(pause is not None)
        self._environment.health.paused = "" if pause is None else paused_in_words(pause)
        return pause is not None

    def _try_some(self) -> int:
        """Discards, and applies a micro-batch of units; returns the number of units that were selected."""
        if self._is_stale:
            self._is_stale = False
            self._micro_batches.read_catalogue(self._stop)
        self._discard()
        self._stop_at_failure()
        selection = self._select()
        if selection.units:
            self._apply(selection)
        return len(selection.units)

    def _select(self) -> Selection:
        """Selects the units of the next micro-batch; stands still before it where a comparison asks for that."""
        self._stop_point.look(self._backlog)
        selection = self._take()
        if not selection.units and self._stop_point.is_reached(self._backlog):
            self._stop_point.hold(self._backlog, self._closed, self._stop.wait)
            selection = self._take()
        self._stop_point.begins(selection.units)
        return selection

    def _take(self) -> Selection:
        return self._backlog.take(self._settings.max_units, MAX_DELTAS, time.monotonic())

    def _closed(self) -> int:
        """Shuts out all tasks; returns the number with which the fence is closed."""
        self._micro_batches.close(())
        return self._micro_batches.mark.micro_batch

    def _poll(self, *, strong: bool) -> None:
        """Folds the log's new entries; notes if the daemon may have read another catalogue than this job."""
        with self._metrics.timing(metric.POLL_TIME):
            whole = self._follower.poll(strong=strong)
        if not whole:
            event(_LOG, logging.WARNING, "log truncated before it was read, reading it anew", at=self._follower.next_id)
            self._read_log()
        # An entry that was truncated before it was read may have named a new scheme of signatures.
        if self._follower.schemes != self._schemes or not whole:
            self._schemes = self._follower.schemes
            self._is_stale = True

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
        self._write_all_down()

    def _stop_at_failure(self) -> None:
        if self._settings.on_failure is not OnFailure.STOP or not self._backlog.failed:
            return
        tid, cause = min(self._backlog.failed.items())
        raise TargetRejectedError(
            f"unit {self._follower.units[tid].uow} (transaction id {tid}) failed: {cause}; onUowFailure is stop: "
            "kainite uow retry or discard it, then start again"
        )

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
        if run.problem is not None:
            self._tell_of_trouble(selection, run)
            self._wait_or_raise(run.problem)
        else:
            self._failures = 0

    def _tell_of_trouble(self, selection: Selection, run: MicroBatchRun) -> None:
        """Notes why units wait, once the trouble has lasted for more than one micro-batch, and then now and then."""
        now = time.monotonic()
        if not self._failures:
            self._trouble_since, self._told = datetime.now(UTC).isoformat(timespec="seconds"), now
        elif self._failures == 1 or now - self._told >= TELL_EVERY_S:
            self._told = now
            known = {outcome.tid for outcome in run.outcomes}
            waits = (unit.tid for unit in selection.units if unit.tid not in known)
            self._backlog.waits_for(waits, f"waits since {self._trouble_since}: {run.problem}")

    def _write_all_down(self) -> None:
        """Makes all outcomes durable that are not yet."""
        self._write_down(self._backlog.take_changes())

    def _write_down(self, news: tuple[Outcome, ...]) -> None:
        """Makes changed outcomes of units durable, then tells the log's owner and the meter of them."""
        if news:
            with self._metrics.timing(metric.OUTCOMES_TIME):
                self._outcomes.append(news, self._micro_batches.mark)
            self._told_outcomes = time.monotonic()
            self._metrics.resolved(news)
            self._announce()
        # A unit that is in progress again, after a retry or a release, has no result yet.
        results = [outcome for outcome in news if outcome.status is not UnitStatus.IN_PROGRESS]
        self._summary.outcomes.update(outcome.status for outcome in results)
        for outcome in results:
            if outcome.status is UnitStatus.FAILED:
                event(_LOG, logging.ERROR, "unit failed", **self._about(outcome), cause=outcome.cause)
            elif outcome.cause is not None and MAY_TOUCH in outcome.cause:
                event(_LOG, logging.WARNING, "failed unit not replaced", **self._about(outcome), cause=outcome.cause)
            elif outcome.cause is not None and outcome.cause.startswith(OVERTAKEN):
                event(_LOG, logging.WARNING, "failed unit replaced", **self._about(outcome), cause=outcome.cause)

    def _about(self, outcome: Outcome) -> dict[str, Any]:
        unit = self._follower.units[outcome.tid]
        return unit_fields(unit.uow, unit.tid, unit.tables)

    def _wait_or_raise(self, problem: KainiteError) -> None:
        """Waits after a problem that may pass; raises any other problem."""
        self._failures += 1
        lost_executor = (
            isinstance(problem, SparkUnavailableError)
            and not isinstance(problem, SparkStalledError)
            and self._failures < SPARK_TRIES
        )
        if not (problem.retryable or lost_executor):
            raise problem
        pause = patience.BACKOFF.after(self._failures)
        self._environment.health.waits_for(problem)
        event(_LOG, logging.WARNING, "micro-batch to be tried again", cause=problem, pause=pause)
        self._stop.wait(pause)

    def _report(self, selection: Selection, run: MicroBatchRun, started: float) -> None:
        self._summary.micro_batches += 1
        self._untidy += 1
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

    def _tidy(self) -> None:
        """Deletes outcomes that the log's owner has copied, and acknowledgements of resolved units.

        A unit's acknowledgement goes only when its outcome is durable: without both it would be applied again.
        """
        if self._untidy and not self._paused:
            self._write_all_down()
            self._tidied = time.monotonic()
            self._outcomes.truncate(self._follower.through + 1)
            self._micro_batches.trim(min(self._backlog.unresolved(), default=self._follower.next_id))
            self._untidy = 0

    def _note_common_mark(self, *, now: bool) -> None:
        """Notes in one of several targets below which id all of them have the units, unless applying is paused."""
        if self._environment.of_several and not self._paused:
            self._common_mark.look(self._follower.everywhere_below, now=now)


def _tell_of_delays(selection: Selection, outcomes: Iterable[Outcome]) -> None:
    units = {unit.tid: unit for unit in selection.units}
    for outcome in outcomes:
        if outcome.status is UnitStatus.IN_PROGRESS:
            unit = units[outcome.tid]
            about = unit_fields(unit.uow, unit.tid, unit.tables)
            event(_LOG, logging.WARNING, "unit delayed", **about, cause=outcome.cause)
