"""Makes the outcomes of units durable, then deletes what nobody needs any more: outcomes and acknowledgements.

The order is what keeps a unit from being applied twice: its acknowledgement goes only when its outcome is durable.
Outcomes go when the log's owner has copied them.

A crash between two steps leaves what the next apply job finds by itself: without the outcome the acknowledgement tells
that the unit is applied; after the outcome it is only space that is not freed yet.
"""

from __future__ import annotations

import logging
import math
import time
from typing import Any

from kainite.base.logs import event
from kainite.log.format.entry import Outcome, UnitStatus
from kainite.log.state.unit_fields import unit_fields
from kainite.observe import metric
from kainite_spark.driver.environment import ApplyEnvironment, ApplySummary
from kainite_spark.driver.follower import LogFollower
from kainite_spark.driver.job_metrics import JobMetrics
from kainite_spark.driver.micro_batches import MicroBatches
from kainite_spark.driver.outcomes import Outcomes
from kainite_spark.plan.passing import MAY_TOUCH, OVERTAKEN

_LOG = logging.getLogger(__name__)

TIDY_EVERY = 50
"""Micro-batches after which acknowledgements and outcomes without further use are deleted."""

REST_BEFORE_TIDYING_S = 5.0
"""The least time, in seconds, from one deletion to one that is made only because no unit waits."""

OUTCOMES_EVERY_S = 1.0
"""The least time, in seconds, from one append of outcomes to one that has a few commits alone. Each append costs the
job, the log's owner and the store two writes and two reads. Nothing waits for commits but the log's own room."""


class OutcomeWriter:
    """Writes what the backlog tells of units' outcomes into the outcomes partition.

    Args:
        environment: has the feed, which is told of durable outcomes.
        outcomes: the outcomes partition.
        follower: has the backlog, and tells how far the owner has copied outcomes.
        micro_batches: delete the target's acknowledgements.
        metrics: count the outcomes.
        summary: counts them, too.
    """

    def __init__(
        self,
        environment: ApplyEnvironment,
        outcomes: Outcomes,
        follower: LogFollower,
        micro_batches: MicroBatches,
        metrics: JobMetrics,
        summary: ApplySummary,
    ) -> None:
        self._feed = environment.feed
        self._outcomes = outcomes
        self._follower = follower
        self._micro_batches = micro_batches
        self._metrics = metrics
        self._summary = summary
        self._untidy = 0
        self._tidied = self._told = -math.inf

    def ran(self) -> None:
        """Notes that a micro-batch has run."""
        self._untidy += 1

    def announce(self) -> None:
        """Tells the log's owner of the outcomes that are durable."""
        if self._feed is not None:
            self._feed.outcomes_at(self._outcomes.last_id)

    def write_due(self, *, now: bool) -> None:
        """Makes outcomes durable, if they may not wait any longer.

        Args:
            now: whether they may not wait at all.
        """
        if now or not self._follower.backlog.may_wait or time.monotonic() >= self._told + OUTCOMES_EVERY_S:
            self.write_all()

    def write_all(self) -> None:
        """Makes all outcomes durable that are not yet; then tells the log's owner and the meter of them."""
        news = self._follower.backlog.take_changes()
        if news:
            with self._metrics.timing(metric.OUTCOMES_TIME):
                self._outcomes.append(news, self._micro_batches.mark)
            self._told = time.monotonic()
            self._metrics.resolved(news)
            self.announce()
        # A unit that is in progress again, after a retry or a release, has no result yet.
        results = [outcome for outcome in news if outcome.status is not UnitStatus.IN_PROGRESS]
        self._summary.outcomes.update(outcome.status for outcome in results)
        for outcome in results:
            self._tell(outcome)

    def tidy_due(self, *, idle: bool) -> None:
        """Tidies up where enough micro-batches have run, or where no unit waits and the latest time is long ago."""
        rested = time.monotonic() >= self._tidied + REST_BEFORE_TIDYING_S
        if self._untidy >= TIDY_EVERY or (idle and rested):
            self.tidy()

    def tidy(self) -> None:
        """Deletes outcomes that the log's owner has copied, and acknowledgements of resolved units.

        A unit's acknowledgement goes only when its outcome is durable: without both it would be applied again. Nothing
        is deleted while a person has paused applying.
        """
        if self._untidy and self._follower.pause is None:
            self.write_all()
            self._tidied = time.monotonic()
            self._outcomes.truncate(self._follower.through + 1)
            self._micro_batches.trim(min(self._follower.backlog.unresolved(), default=self._follower.next_id))
            self._untidy = 0

    def _tell(self, outcome: Outcome) -> None:
        if outcome.status is UnitStatus.FAILED:
            event(_LOG, logging.ERROR, "unit failed", **self._about(outcome), cause=outcome.cause)
        elif outcome.cause is not None and MAY_TOUCH in outcome.cause:
            event(_LOG, logging.WARNING, "failed unit not replaced", **self._about(outcome), cause=outcome.cause)
        elif outcome.cause is not None and outcome.cause.startswith(OVERTAKEN):
            event(_LOG, logging.WARNING, "failed unit replaced", **self._about(outcome), cause=outcome.cause)

    def _about(self, outcome: Outcome) -> dict[str, Any]:
        unit = self._follower.units[outcome.tid]
        return unit_fields(unit.uow, unit.tid, unit.tables)
