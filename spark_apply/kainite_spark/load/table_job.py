"""The driver of the load of one table, while the apply job goes on with all others.

::

    begin ─► consistent point ─► plan ─► steps ─► catch up ─► live ─► foreign keys
      └─ or go on with a load whose snapshot lives, or that needs none any more

:mod:`kainite.replicate.table_ledger` has the states and what a crash at each arrow leaves. That does not depend on what
kind of database the source is; :mod:`kainite_spark.load.copy_source` has what does. MariaDB as the target has the same
states (:mod:`kainite.replicate.mariadb_table_ledger`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from kainite.base.errors import SourceError, TargetRejectedError
from kainite.base.logs import event
from kainite.capture.places import format_place
from kainite.replicate.found_load import FoundLoad, source_name
from kainite.replicate.load_target import DrivenTable, driven_table
from kainite.replicate.table_ledger import OwnLoadState
from kainite.replicate.table_load import OwnLoad
from kainite.replicate.tables import TableName
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.load.catch_up import CatchingUp, CatchUp
from kainite_spark.load.copy_source import CopySource
from kainite_spark.load.job import SNAPSHOTS
from kainite_spark.load.rounds import LostSnapshotError, StepRounds, StepRunner, goes_on, make_foreign_keys
from kainite_spark.load.tasks import LoadTask

if TYPE_CHECKING:
    from kainite.replicate.load_target import LoadSession

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class TableLoadJob:
    """Loads one table of a live target.

    Attributes:
        source: the source of the whole replica, and the way to the target.
        table: the table's schema and name in the target.
        connection: a session with the target, in autocommit mode, of this job alone.
        runner: runs the steps.
        session: opens a session of the apply job's kind, with the target's tables as they are then.
        catalogue: reads the target's tables.
        make: makes the table where the target lacks it, as the load begins; it is given the session.
        made: called behind that, before the table's point: adds it to the publication.
        stop: set to end the load; the table's deltas are held until it is started again.
        look: called now and then, for progress.
    """

    source: CopySource
    table: TableName
    connection: LoadSession
    runner: StepRunner
    session: Callable[[], CatchingUp]
    catalogue: Callable[[], Catalogue]
    make: Callable[[Any], None] = lambda _: None
    made: Callable[[], None] = lambda: None
    stop: threading.Event = field(default_factory=threading.Event)
    look: Callable[[], None] = lambda: None

    def run(self, *, anew: bool = False) -> OwnLoad:
        """Loads the table, or goes on; returns its state then, *live* unless stopped.

        Args:
            anew: begins anew where a load of the table was left half done.

        Raises:
            SettingsError: source or target are behind a pooler in transaction mode.
            SourceError: no point could be made, what commits does not reach the log, the table is missing, or snapshots
                were lost again.
            CatalogueError: the target is not live, or lacks what the table needs, or foreign keys cannot be dropped.
            TargetRejectedError: rows, deltas or foreign keys were refused; the message has the causes.
            TargetFencedError: another load of the table has taken over.
            TargetError: another load of the table runs.
            TargetUnavailableError: the target or the source did not answer for a while.
            SparkUnavailableError: Spark jobs failed again and again.
        """
        self.source.check_sessions()
        load = driven_table(self.connection, self.source.ends.log_partition, self.table)
        load.steps.create()
        own = self.source.of_table(self.table, load.name)
        for _ in range(SNAPSHOTS):
            try:
                return self._run(load, own, anew=anew)
            except LostSnapshotError as error:
                event(_LOG, logging.WARNING, "the source's snapshot is gone: the load begins anew", cause=error)
                anew = True
        raise SourceError(f"the source's snapshot was lost {SNAPSHOTS} times: start again when that is over")

    def _run(self, load: DrivenTable, own: CopySource, *, anew: bool) -> OwnLoad:
        found = load.steps.found()
        if anew or not goes_on(own, load.steps, found):
            self._begin(load, own, found)
        try:
            self._nudge()
            self._copy(load, own)
            live = not self.stop.is_set() and self._catch_up(load, own)
        except TargetRejectedError as error:
            load.enter(OwnLoadState.FAILED, str(error))
            raise
        if live:
            make_foreign_keys(self.connection, self.source.ends.log_partition)
        now = load.found()
        assert now is not None, "the load has begun"
        return now

    def _begin(self, load: DrivenTable, own: CopySource, left: FoundLoad | None) -> None:
        own.check()
        if left is not None and left.snapshot:
            own.release(left.snapshot)
        dropped = load.begin(self.make)
        for name in dropped:
            event(_LOG, logging.INFO, "foreign key dropped until its tables are live", constraint=name)
        self.made()
        planned = own.plan(self.catalogue(), self.runner.parallelism)
        generation = load.steps.generation
        point = planned.point(generation)
        load.plan(point, planned.steps)
        place = format_place(point.lsn, source_name(point))
        event(_LOG, logging.INFO, "load begins", table=".".join(self.table), position=place,
              ranges=len(planned.steps), generation=generation)  # fmt: skip

    def _nudge(self) -> None:
        """Has a transaction commit behind the point, by which the apply job passes it."""
        try:
            self.source.nudge()
        except SourceError as error:
            event(_LOG, logging.WARNING, "no heartbeat: the table goes live behind the next transaction", cause=error)

    def _copy(self, load: DrivenTable, own: CopySource) -> None:
        now = load.steps.found()
        assert now is not None, "the load has begun"
        if now.copies:
            load.enter(OwnLoadState.LOADING)
        StepRounds(load.steps, self.runner, self.stop, self.look).run(
            LoadTask(own.ends, load.steps.generation, now.snapshot)
        )
        if now.snapshot and not self.stop.is_set():
            own.release(now.snapshot)

    def _catch_up(self, load: DrivenTable, own: CopySource) -> bool:
        load.enter(OwnLoadState.CATCHING_UP)
        found = load.found()
        assert found is not None
        assert found.position is not None
        point = partial(own.check_point, found.position)

        def check() -> None:
            own.check()
            point()

        try:
            check()
            with closing(self.session()) as session:
                return CatchUp(load, found.position, session, self.stop, self.look, check, point).run()
        except SourceError:  # what commits has not reached the log: the copy is worth nothing
            load.steps.void()
            raise
