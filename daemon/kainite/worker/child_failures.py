"""Counts the failures of one shard's children, decides what follows, and logs them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from kainite.base.errors import ChildError, KainiteError, LogRequestError
from kainite.base.logs import event
from kainite.base.position import Position
from kainite.base.record import Pieces
from kainite.child.events import Span
from kainite.child.markers.death_policy import DeathPolicy
from kainite.child.restart_policy import AT_SHARD_END, RestartPolicy
from kainite.kinesis.read.record_batch import RecordBatch
from kainite.settings import ChildSettings
from kainite.worker.consumer_states import ConsumerState

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Consequence:
    """A failure, and its consequence.

    Attributes:
        error: how the child, the stream, the log or the lease table failed.
        state: the consumer's state at the failure.
        pause: seconds until the next child is started.
        tries: how often in a row children failed on the same records; without a culprit, since the last progress.
        culprit: the records on which the child failed; None when it failed at another time.
        left_out: whether the culprit is not sent any more.
        poison: whether the culprit is to be reported as poison now.
    """

    error: KainiteError
    state: ConsumerState
    pause: float
    tries: int
    culprit: Span | None
    left_out: bool
    poison: bool


class ChildFailures:
    """The failures of one shard's children, across restarts of the child.

    Args:
        shard_id: the shard, for the log.
        settings: the pauses and tries; later changes of these settings hold for the next consumer.
    """

    def __init__(self, shard_id: str, settings: ChildSettings) -> None:
        self._shard = shard_id
        self._restarts = RestartPolicy(settings.restart_backoff, settings.restart_backoff_max, settings.poison_tries)
        self._deaths = DeathPolicy()

    @property
    def count(self) -> int:
        """Returns how many children have failed since the last progress."""
        return self._restarts.failures

    def begin(self, settings: ChildSettings, position: Position | None) -> None:
        """Begins another child, which continues after ``position``."""
        self._deaths.begin(settings, position)

    def mark(self, line: Pieces) -> Pieces:
        """Marks the records of a rendered batch that are left out."""
        return self._deaths.mark(line)

    def passed(self, batch: RecordBatch) -> None:
        """Notes that a child has processed a batch."""
        self._restarts.passed(batch.first, batch.last)

    def failed(
        self,
        error: KainiteError,
        state: ConsumerState,
        settings: ChildSettings,
        *,
        batch: Span | None = None,
        in_flight: Span | None = None,
        answered: bool = False,
    ) -> Consequence:
        """Counts a failure, and decides what follows.

        Args:
            error: how the child, the stream, the log or the lease table failed.
            state: the consumer's state at the failure.
            settings: the settings of the child that failed.
            batch: the batch that the child failed on; None when it failed at another time.
            in_flight: the part of the batch that was in flight, where the dialect knows it.
            answered: whether the child had answered anything before.
        """
        culprit = in_flight or batch
        place = AT_SHARD_END if state is ConsumerState.SHARD_ENDED else culprit.first if culprit else None
        decision = self._restarts.failed(place)
        left_out = in_flight is not None and self._deaths.died(
            in_flight, decision.tries, error, settings, answered=answered
        )
        pause = settings.restart_backoff if left_out else decision.pause
        return Consequence(error, state, pause, decision.tries, culprit, left_out, decision.poison)

    def report(self, failure: Consequence, stderr: Sequence[str] = ()) -> None:
        """Logs a failure, and the records that are left out or poison.

        Args:
            failure: what :meth:`failed` returned.
            stderr: the last lines of the child's standard error, complete because the child has ended.
        """
        self._report_failure(failure, stderr)
        if failure.culprit and (failure.left_out or failure.poison):
            event(logger, logging.ERROR, "records left out" if failure.left_out else "poison batch", shard=self._shard,
                  first=failure.culprit.first.sequence, last=failure.culprit.last.sequence, tries=failure.tries,
                  stderr="\n".join(stderr))  # fmt: skip

    def _report_failure(self, failure: Consequence, stderr: Sequence[str]) -> None:
        fields = {"shard": self._shard, "state": failure.state.name, "error": failure.error}
        if isinstance(failure.error, LogRequestError) and failure.tries == 1:
            # The lease was handed over: another holder of the shard has appended. The next try begins behind that.
            event(logger, logging.INFO, "shard read anew", **fields)
            return
        words = stderr if isinstance(failure.error, ChildError) else ()
        last = next((line for line in reversed(words) if line.strip()), None)
        event(logger, logging.ERROR, "shard failed", **fields, stderr=last, tries=failure.tries, pause=failure.pause)
