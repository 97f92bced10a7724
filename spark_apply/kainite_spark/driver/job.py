"""The apply job: follows the log, runs one micro-batch after the other, and makes the units' outcomes durable.

Each step of a round acts on one of three places: the main log, which is only read; the target; the outcomes
partition, which this job alone writes::

    poll the log ─► discard ─► select units ─► advance the fence ─► run the micro-batch ─► append outcomes ─► tidy up

:mod:`kainite_spark.driver.applying` has the steps from the discard to the run,
:mod:`kainite_spark.driver.outcome_writer` those behind it. What is done under a fence is in
:mod:`kainite_spark.driver.micro_batches`.

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
before the outcomes     the same as in the run; commits may wait for their outcomes (``OUTCOMES_EVERY_S``)
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
import threading
import time

from kainite.base.logs import event
from kainite.log.format.entry import OperationMeta
from kainite.log.state.operations import paused_in_words
from kainite.log.state.outcomes import outcomes_partition
from kainite.observe import metric
from kainite.owner.mount import LeaseWatch
from kainite_spark.driver.applying import Applying
from kainite_spark.driver.common_mark import CommonMark
from kainite_spark.driver.early_read import EarlyRead
from kainite_spark.driver.environment import ApplyEnvironment, ApplySummary
from kainite_spark.driver.follower import LogFollower
from kainite_spark.driver.job_health import JobStage
from kainite_spark.driver.job_metrics import JobMetrics
from kainite_spark.driver.micro_batches import MicroBatches
from kainite_spark.driver.outcome_writer import OutcomeWriter
from kainite_spark.driver.outcomes import Outcomes, mount_outcomes
from kainite_spark.driver.pace import Pace
from kainite_spark.driver.patience import patiently
from kainite_spark.driver.payloads import Payloads
from kainite_spark.driver.prepared_watch import PreparedWatch
from kainite_spark.plan.backlog import Backlog

_LOG = logging.getLogger(__name__)

LONGEST_IDLE_S = 1.0
"""The longest pause, in seconds, between two polls of a log without news."""


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
            CatalogueError: another log has got one of the tables while the job waited for its turn.
            TargetRejectedError: a unit failed, and ``onUowFailure`` is ``stop``.
            LogCorruptError: the log does not read back as written.
            SparkUnavailableError: Spark jobs failed :data:`~kainite_spark.driver.trouble.SPARK_TRIES` times in a row.
            SparkStalledError: no task of a Spark job ran.
        """
        environment = self._environment
        name = outcomes_partition(environment.partition, environment.name)
        environment.health.enter(JobStage.STANDBY)
        early = EarlyRead(environment.store, environment.partition)
        mounted = mount_outcomes(
            environment.store, name, environment.owner, environment.settings.lease, self._stop, self._watch, early.read
        )
        if mounted is None:
            return
        environment.health.enter(JobStage.APPLYING)
        with mounted as outcomes:
            loop = _ApplyLoop(environment, outcomes, self._stop, self.summary, early)
            patiently(loop.start, self._stop)
            loop.run(once=once)


class _ApplyLoop:
    """The rounds of an apply job that has mounted its outcomes partition."""

    def __init__(
        self,
        environment: ApplyEnvironment,
        outcomes: Outcomes,
        stop: threading.Event,
        summary: ApplySummary,
        early: EarlyRead,
    ) -> None:
        self._environment = environment
        self._settings = environment.settings
        self._outcomes = outcomes
        self._stop = stop
        self._metrics = JobMetrics(environment.meter)
        payloads = Payloads(self._settings.feed_bytes)
        new_backlog = functools.partial(
            Backlog, policy=self._settings.on_failure, consistency=self._settings.consistency
        )
        self._follower = LogFollower(
            environment.store, environment.partition, new_backlog, environment.feed, payloads, environment.name, early
        )
        self._micro_batches = MicroBatches(environment, outcomes.generation, payloads, self._metrics)
        self._writer = OutcomeWriter(environment, outcomes, self._follower, self._micro_batches, self._metrics, summary)
        self._applying = Applying(
            environment,
            outcomes.generation,
            self._follower,
            self._micro_batches,
            self._writer,
            self._metrics,
            stop,
            summary,
        )
        self._common_mark = CommonMark(self._micro_batches.note_common_mark)
        self._prepared = PreparedWatch(environment, self._metrics, time.monotonic)
        self._schemes = 0
        self._paused: OperationMeta | None = None

    @property
    def _backlog(self) -> Backlog:
        return self._follower.backlog

    def start(self) -> None:
        """Fences the target, then reads which units are unresolved: afterwards no older job can commit a unit.

        Raises:
            TargetWentBackError: the target lacks units that the log has as committed.
            CatalogueError: another log has one of the tables.
        """
        mark = self._outcomes.read_mark()
        self._micro_batches.raise_generation(None if self._environment.adopts else mark)
        self._micro_batches.settle_tables()
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
        self._writer.announce()

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
                self._wait(min(pause, self._applying.stop_point.longest_wait))
                pause = min(pause * 1.5, max(idle, LONGEST_IDLE_S))
        patiently(self._writer.write_all, self._stop)
        patiently(self._writer.tidy, self._stop)

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
        selected = 0 if self._hold() else self._applying.try_some()
        self._writer.write_due(now=strong)
        everywhere = self._follower.everywhere_below if self._environment.of_several else None
        self._metrics.sample(self._backlog, self._follower.next_id, everywhere)
        feed = self._environment.feed
        followed = feed is not None and feed.is_following
        self._metrics.followed(followed)
        if not self._applying.trouble.lasts:
            self._environment.health.round(len(self._backlog.failed), followed=followed)
        self._writer.tidy_due(idle=not selected)
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
            self._applying.doubt_catalogue()

    def _note_common_mark(self, *, now: bool) -> None:
        """Notes in one of several targets below which id all of them have the units, unless applying is paused."""
        if self._environment.of_several and not self._paused:
            self._common_mark.look(self._follower.everywhere_below, now=now)
