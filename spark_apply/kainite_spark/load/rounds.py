"""Runs the steps of a load, stage by stage, as Spark jobs, until none is left.

One step that is refused ends no other: all that can be done is done, then the causes are raised. Which steps are done
is in the ledger alone, so a crash leaves nothing else.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from kainite.base.errors import SourceError, TargetFencedError, TargetRejectedError, TargetUnavailableError
from kainite.base.logs import event
from kainite.base.retry import Backoff
from kainite.base.words import counted
from kainite.capture.places import format_place
from kainite.replicate.found_load import FoundLoad
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_target import DrivenLedger, foreign_keys_made
from kainite_spark.load.copy_source import CopySource
from kainite_spark.load.tasks import LoadStepResult, LoadTask, StepOutcome

if TYPE_CHECKING:
    from kainite.replicate.load_target import LoadSession

_LOG = logging.getLogger(__name__)

STEPS_A_JOB: Final = 128
"""Most steps of a Spark job, so that the driver sees soon what became of them."""

ROUNDS_WITHOUT_A_STEP: Final = 8
"""Spark jobs in a row that did no step, after which a load ends; the pauses between them grow."""

_BACKOFF: Final = Backoff.doubling(0.2, 10.0)


class StepRunner(Protocol):
    """Runs steps as tasks."""

    @property
    def parallelism(self) -> int:
        """Returns how many steps run at once."""

    def run(self, task: LoadTask, steps: Sequence[int], look: Callable[[], None]) -> list[LoadStepResult]:
        """Runs steps; a step without a result did not run.

        Args:
            task: what the steps have in common.
            steps: their numbers.
            look: called every second or so while they run; its errors end the waiting.

        Raises:
            SparkUnavailableError: the Spark job failed; the ledger has which steps are done.
        """


class LostSnapshotError(Exception):
    """The snapshot is gone."""


def goes_on(source: CopySource, ledger: DrivenLedger, found: FoundLoad | None) -> bool:
    """Goes on with a load that was left, if what is left of it can be done; tells whether it does.

    Args:
        source: what is copied.
        ledger: the load's.
        found: the load as it was left.
    """
    if found is None or found.state is not LoadState.LOADING or found.position is None:
        return False
    position = format_place(found.position, found.source)
    if found.copies and not (found.snapshot and source.lives(found.snapshot)):
        event(_LOG, logging.WARNING, "the source's snapshot is gone: the load begins anew", position=position)
        return False
    try:
        source.check_point(found.position)
    except SourceError as error:
        event(_LOG, logging.WARNING, "the copy is worth nothing: the load begins anew", position=position, cause=error)
        return False
    ledger.go_on()
    event(_LOG, logging.INFO, "load goes on", position=position, generation=ledger.generation)
    return True


def make_foreign_keys(connection: LoadSession, log_partition: str) -> None:
    """Makes foreign keys that are off again, where both tables are live; raises TargetRejectedError for refusals."""
    if refused := foreign_keys_made(connection, log_partition):
        raise TargetRejectedError(
            f"rows are in their places, and foreign keys were refused: {'; '.join(refused)}. Mend that and start again:"
            " it makes them"
        )


@dataclass(frozen=True, slots=True)
class StepRounds:
    """The steps of one load.

    Attributes:
        ledger: has the steps, and which of them are done.
        runner: runs them.
        stop: set to end after the steps that run.
        look: called now and then while they run.
    """

    ledger: DrivenLedger
    runner: StepRunner
    stop: threading.Event
    look: Callable[[], None]

    def run(self, task: LoadTask) -> None:
        """Runs steps until none is left; raises TargetRejectedError where some were refused."""
        refused: dict[int, str] = {}
        idle = 0
        while not self.stop.is_set() and (left := self.ledger.left(refused)):
            results = self.runner.run(task, left[:STEPS_A_JOB], self._look)
            idle = 0 if self._judge(results, refused) else idle + 1
            if idle >= ROUNDS_WITHOUT_A_STEP:
                cause = next((result.cause for result in results if result.cause), "no task ran")
                raise TargetUnavailableError(f"the load does not get on: {cause}; start it again, it goes on")
            if idle:
                self.stop.wait(_BACKOFF.after(idle))
        if refused:
            raise TargetRejectedError(_refusal(self.ledger, refused))

    def _judge(self, results: Sequence[LoadStepResult], refused: dict[int, str]) -> bool:
        """Looks at the results of steps; tells whether one was done, or refused."""
        for result in results:
            match result.outcome:
                case StepOutcome.FENCED:
                    raise TargetFencedError("another kainite replicate load has begun since, and goes on in its place")
                case StepOutcome.SNAPSHOT_LOST:
                    raise LostSnapshotError(result.cause)
                case StepOutcome.REFUSED:
                    refused[result.step] = result.cause
                    self.ledger.failed(result.step, result.cause)
                    event(_LOG, logging.ERROR, "step refused", step=result.step, cause=result.cause)
                case StepOutcome.AGAIN:
                    event(_LOG, logging.WARNING, "step to be tried again", step=result.step, cause=result.cause)
        return any(result.outcome in (StepOutcome.DONE, StepOutcome.REFUSED) for result in results)

    def _look(self) -> None:
        self.ledger.seen()
        self.look()


def _refusal(ledger: DrivenLedger, refused: dict[int, str]) -> str:
    named = ledger.names_of(refused)
    causes = dict.fromkeys(f"{name}: {refused[step]}" for step, name in named.items())
    were = "was" if len(refused) == 1 else "were"
    return (
        f"{counted(len(refused), 'step')} of the load {were} refused, all others that could be done are done."
        f" {'. '.join(causes)}."
        " Mend that and start the load again: it goes on with what is left"
    )
