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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kainite.base.errors import CatalogueError, SourceError
from kainite.base.logs import event
from kainite.capture.places import format_place
from kainite.replicate.found_load import WAS_CUT_OVER, FoundLoad, source_name
from kainite.replicate.ledger import LoadState
from kainite.replicate.load_target import DrivenLedger, driven_ledger
from kainite.replicate.tables import TableName
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.load.copy_source import CopySource
from kainite_spark.load.rounds import LostSnapshotError, StepRounds, StepRunner, goes_on, make_foreign_keys
from kainite_spark.load.tasks import LoadTask

if TYPE_CHECKING:
    from kainite.replicate.load_target import LoadSession

_LOG = logging.getLogger(__name__)

SNAPSHOTS: Final = 3
"""Times that one call begins anew because its snapshot was lost: whatever ends it is likely to end the next one."""


@dataclass(slots=True)
class LoadJob:
    """Loads a target.

    Attributes:
        source: the source, and the way to the target.
        connection: a session with the target, in autocommit mode, of this job alone.
        runner: runs the steps.
        catalogue: reads the target's tables.
        stop: set to end the load after the steps that run.
        look: called now and then while steps run, for progress.
        take_over: shuts out apply jobs of before where the target went back, and returns the generation under which its
            fence is to be closed (:mod:`kainite_spark.load.takeover`).
        check_emptied: called with the tables before anything is changed; raises CatalogueError where others write one.
    """

    source: CopySource
    connection: LoadSession
    runner: StepRunner
    catalogue: Callable[[], Catalogue]
    stop: threading.Event = field(default_factory=threading.Event)
    look: Callable[[], None] = lambda: None
    take_over: Callable[[], int | None] = lambda: None
    check_emptied: Callable[[Sequence[TableName]], None] = lambda _: None

    def run(self, *, anew: bool = False) -> FoundLoad:
        """Loads the target, or goes on with a load; returns it as it is then, *live* unless stopped.

        Args:
            anew: begins anew in any case, also where the target is live.

        Raises:
            SettingsError: source or target are behind a pooler in transaction mode.
            SourceError: no point could be made, what commits does not reach the log, or snapshots were lost
                again and again.
            CatalogueError: the target has rows from elsewhere, or was cut over, or its foreign keys form a cycle; or
                others write a table that would be emptied.
            TargetRejectedError: steps were refused; the message has the causes.
            TargetFencedError: another load has taken over.
            TargetError: another load runs.
            TargetUnavailableError: the target or the source did not answer for a while.
            SparkUnavailableError: Spark jobs failed again and again.
        """
        self.source.check_sessions()
        ledger = driven_ledger(self.connection, self.source.ends.log_partition)
        ledger.create()
        found = ledger.found()
        if found is not None and found.state is LoadState.CUT_OVER:
            raise CatalogueError(WAS_CUT_OVER)
        if found is not None and found.state is LoadState.LIVE and not anew:
            make_foreign_keys(self.connection, self.source.ends.log_partition)
            return found
        for _ in range(SNAPSHOTS):
            try:
                self._load(ledger, None if anew else found)
            except LostSnapshotError as error:
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

    def _load(self, ledger: DrivenLedger, found: FoundLoad | None) -> None:
        if not goes_on(self.source, ledger, found):
            self._release(ledger.found())
            self._begin(ledger)
        now = ledger.found()
        assert now is not None
        task = LoadTask(self.source.ends, ledger.generation, now.snapshot)
        StepRounds(ledger, self.runner, self.stop, self.look).run(task)
        if not self.stop.is_set():
            self._finish(ledger, now)

    def _finish(self, ledger: DrivenLedger, now: FoundLoad) -> None:
        """Makes the load live; what committed since the point comes through the log, or the copy is worth nothing."""
        assert now.position is not None, "the load has a point"
        try:
            self.source.check()
            self.source.check_point(now.position)
        except SourceError:
            ledger.void()
            raise
        ledger.finish()
        self._release(now)
        event(_LOG, logging.INFO, "target is live", position=format_place(now.position, now.source))
        make_foreign_keys(self.connection, self.source.ends.log_partition)

    def _release(self, found: FoundLoad | None) -> None:
        if found is not None and found.snapshot:
            self.source.release(found.snapshot)

    def _begin(self, ledger: DrivenLedger) -> None:
        self.source.check()
        planned = self.source.plan(self.catalogue(), self.runner.parallelism)
        self.check_emptied([table.place for table in planned.tables])
        generation = self.take_over()
        ledger.begin(-1 if generation is None else generation)
        point = planned.point(ledger.generation)
        ledger.plan(point, planned.tables, planned.steps)
        event(_LOG, logging.INFO, "load begins", position=format_place(point.lsn, source_name(point)),
              tables=len(planned.tables), ranges=len(planned.steps), generation=ledger.generation)  # fmt: skip
