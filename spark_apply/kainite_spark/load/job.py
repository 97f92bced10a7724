"""The driver of a load: makes the consistent point, runs the steps as Spark jobs, and makes the target live.

::

    prepare the target ─► begin ─► consistent point ─► plan ─► stage by stage: Spark jobs of steps ─► finish
                            └─ or go on with a load whose snapshot lives

:mod:`kainite.replicate.ledger` has the states and what a crash at each arrow leaves. One step that the target refuses
ends no other: all that can be copied is copied, then the load ends with the causes, and may be started again when they
are mended; as long as the snapshot lives it goes on with what is left.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import psycopg

from kainite.base.errors import (
    SourceError,
    TargetFencedError,
    TargetRejectedError,
    TargetUnavailableError,
)
from kainite.base.logs import event
from kainite.base.retry import Backoff
from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S, lives
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.replicate.ends import ReplicaEnds, source_session
from kainite.replicate.keeper import kept_snapshot
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_ledger import FoundLoad, LoadLedger
from kainite.replicate.plan import load_steps
from kainite.replicate.preparation import check_ready
from kainite.replicate.session_checks import look_at_sessions
from kainite.replicate.slot import check_slot
from kainite.replicate.tables import ReplicaTable, published
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.load.tasks import LoadStepResult, LoadTask, StepOutcome

_LOG = logging.getLogger(__name__)

STEPS_A_JOB: Final = 128
"""Most steps of a Spark job, so that the driver sees soon what became of them."""

ROUNDS_WITHOUT_A_STEP: Final = 8
"""Spark jobs in a row that did no step, after which a load ends; the pauses between them grow."""

SNAPSHOTS: Final = 3
"""Times that one call begins anew because its snapshot was lost: whatever ends it is likely to end the next one."""

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


class _LostError(Exception):
    """The snapshot is gone."""


@dataclass(slots=True)
class LoadJob:
    """Loads a target.

    Attributes:
        ends: source and target.
        connection: a session with the target, in autocommit mode, of this job alone.
        runner: runs the steps.
        catalogue: reads the target's tables.
        stop: set to end the load after the steps that run.
        look: called now and then while steps run, for progress.
        lock_wait: seconds to wait for open transactions of the source.
    """

    ends: ReplicaEnds
    connection: psycopg.Connection
    runner: StepRunner
    catalogue: Callable[[], Catalogue]
    stop: threading.Event = field(default_factory=threading.Event)
    look: Callable[[], None] = lambda: None
    lock_wait: float = LOCK_WAIT_S

    def run(self, *, anew: bool = False) -> FoundLoad:
        """Loads the target, or goes on with a load; returns it as it is then, *live* unless stopped.

        Args:
            anew: begins anew in any case, also where the target is live.

        Raises:
            SettingsError: source or target are behind a pooler in transaction mode.
            SourceError: no point could be made, the slot is missing, or snapshots were lost again and again.
            CatalogueError: the target has rows from elsewhere, or was cut over, or its foreign keys form a cycle.
            TargetRejectedError: steps were refused; the message has the causes.
            TargetFencedError: another load has taken over.
            TargetError: another load runs.
            TargetUnavailableError: the target or the source did not answer for a while.
            SparkUnavailableError: Spark jobs failed again and again.
        """
        check_ready(tuple(look_at_sessions(self.ends)))
        ledger = LoadLedger(self.connection, self.ends.log_partition)
        ledger.create()
        found = ledger.found()
        if found is not None and found.state is LoadState.LIVE and not anew:
            return found
        for _ in range(SNAPSHOTS):
            try:
                self._load(ledger, None if anew else found)
            except _LostError as error:
                event(_LOG, logging.WARNING, "the source's snapshot is gone: the load begins anew", cause=error)
                found, anew = None, False
                continue
            now = ledger.found()
            assert now is not None
            return now
        raise SourceError(
            f"the source's snapshot was lost {SNAPSHOTS} times: something ends its session (a restart of the server, a"
            " failover, idle_session_timeout, an operator); start the load again when that is over"
        )

    def _load(self, ledger: LoadLedger, found: FoundLoad | None) -> None:
        if not self._goes_on(ledger, found):
            self._begin(ledger)
        now = ledger.found()
        assert now is not None
        task = LoadTask(self.ends, ledger.generation, now.snapshot)
        self._run_stages(ledger, task)
        if not self.stop.is_set():
            self._finish(ledger, now)

    def _finish(self, ledger: LoadLedger, now: FoundLoad) -> None:
        """Makes the load live; what committed since the point is in the slot, or the copy is worth nothing."""
        try:
            check_slot(self.ends.source)
        except SourceError:
            ledger.void()
            raise
        ledger.finish()
        event(_LOG, logging.INFO, "target is live", position=format_lsn(now.position or 0))

    def _goes_on(self, ledger: LoadLedger, found: FoundLoad | None) -> bool:
        """Goes on with a load that was left, if what is left of it can be done."""
        if found is None or found.state is not LoadState.LOADING or found.position is None:
            return False
        if found.copies and not (found.snapshot and lives(self.ends.source.url, found.snapshot)):
            event(_LOG, logging.WARNING, "the source's snapshot is gone: the load begins anew",
                  position=format_lsn(found.position))  # fmt: skip
            return False
        ledger.go_on()
        event(_LOG, logging.INFO, "load goes on", position=format_lsn(found.position), generation=ledger.generation)
        return True

    def _begin(self, ledger: LoadLedger) -> None:
        check_slot(self.ends.source)
        tables = self._published()
        steps = load_steps(tables, self.catalogue(), self.runner.parallelism)
        ledger.begin()
        oids = [part.oid for table in tables for part in table.parts]
        point = kept_snapshot(self.ends, ledger.generation, oids, self.lock_wait)
        ledger.plan(point, tables, steps)
        event(_LOG, logging.INFO, "load begins", position=format_lsn(point.lsn), tables=len(tables), ranges=len(steps),
              generation=ledger.generation)  # fmt: skip

    def _published(self) -> tuple[ReplicaTable, ...]:
        with source_session(self.ends.source.url) as source:
            tables = published(source, self.ends.source.publication)
        if not tables:
            name = self.ends.source.publication
            raise SourceError(f"publication {name} has no table, or does not exist: kainite replicate init tells more")
        return tables

    def _run_stages(self, ledger: LoadLedger, task: LoadTask) -> None:
        """Runs steps until none is left; raises TargetRejectedError where some were refused."""
        refused: dict[int, str] = {}
        idle = 0
        while not self.stop.is_set() and (left := ledger.left(refused)):
            results = self.runner.run(task, left[:STEPS_A_JOB], self._looking(ledger))
            idle = 0 if self._judge(ledger, results, refused) else idle + 1
            if idle >= ROUNDS_WITHOUT_A_STEP:
                cause = next((result.cause for result in results if result.cause), "no task ran")
                raise TargetUnavailableError(f"the load does not get on: {cause}; start it again, it goes on")
            if idle:
                self.stop.wait(_BACKOFF.after(idle))
        if refused:
            raise TargetRejectedError(_refusal(ledger, refused))

    def _judge(self, ledger: LoadLedger, results: Sequence[LoadStepResult], refused: dict[int, str]) -> bool:
        """Looks at the results of steps; tells whether one was done, or refused."""
        for result in results:
            match result.outcome:
                case StepOutcome.FENCED:
                    raise TargetFencedError("another kainite replicate load has begun since, and goes on in its place")
                case StepOutcome.SNAPSHOT_LOST:
                    raise _LostError(result.cause)
                case StepOutcome.REFUSED:
                    refused[result.step] = result.cause
                    ledger.failed(result.step, result.cause)
                    event(_LOG, logging.ERROR, "step refused", step=result.step, cause=result.cause)
                case StepOutcome.AGAIN:
                    event(_LOG, logging.WARNING, "step to be tried again", step=result.step, cause=result.cause)
        return any(result.outcome in (StepOutcome.DONE, StepOutcome.REFUSED) for result in results)

    def _looking(self, ledger: LoadLedger) -> Callable[[], None]:
        def look() -> None:
            ledger.seen()
            self.look()

        return look


_NAMES: Final = """
    SELECT step, format('%%I.%%I', table_schema, table_name) AS name FROM kainite_load_step
    WHERE step = ANY(%s::bigint[]) ORDER BY step"""


def _refusal(ledger: LoadLedger, refused: dict[int, str]) -> str:
    named: Iterator[Any] = iter(ledger.rows(_NAMES, list(refused)))
    causes = dict.fromkeys(f"{row.name}: {refused[row.step]}" for row in named if row.step in refused)
    return (
        f"{len(refused)} steps of the load were refused, all others that could be done are done. {'. '.join(causes)}."
        " Mend that and start the load again: it goes on with what is left"
    )
