"""The driver of the load of one table, while the apply job goes on with all others.

::

    begin ─► consistent point ─► plan ─► Spark jobs of steps ─► catch up ─► live ─► foreign keys
      └─ or go on with a load whose snapshot lives, or that needs none any more

:mod:`kainite.replicate.table_ledger` has the states and what a crash at each arrow leaves.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

import psycopg

from kainite.base.errors import SourceError, TargetRejectedError
from kainite.base.logs import event
from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S, lives
from kainite.capture.postgresql.heartbeat import PREFIX
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.replicate.ends import ReplicaEnds, source_session
from kainite.replicate.keeper import kept_snapshot
from kainite.replicate.plan import load_steps
from kainite.replicate.preparation import check_ready
from kainite.replicate.session_checks import look_at_sessions
from kainite.replicate.slot import check_slot
from kainite.replicate.table_ledger import OwnLoadState
from kainite.replicate.table_load import OwnLoad, TableLoad
from kainite.replicate.tables import ReplicaTable, TableName, published
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.load.catch_up import CatchUp
from kainite_spark.load.job import SNAPSHOTS
from kainite_spark.load.rounds import LostSnapshotError, StepRounds, StepRunner, goes_on, make_foreign_keys
from kainite_spark.load.tasks import LoadTask
from kainite_spark.targets.postgresql.session import PostgresSession

_LOG = logging.getLogger(__name__)

_NUDGE = "SELECT pg_logical_emit_message(true, %s, '')"


@dataclass(slots=True)
class TableLoadJob:
    """Loads one table of a live target.

    Attributes:
        ends: source and target.
        table: the table's schema and name.
        connection: a session with the target, in autocommit mode, of this job alone.
        runner: runs the steps.
        session: opens a session of the apply job's kind, with the target's tables as they are then.
        make: makes the table where the target lacks it, in the transaction that begins the load.
        made: called behind that transaction, before the table's point: adds it to the publication.
        stop: set to end the load; the table's deltas are held until it is started again.
        look: called now and then, for progress.
        lock_wait: seconds to wait for open transactions of the source.
    """

    ends: ReplicaEnds
    table: TableName
    connection: psycopg.Connection
    runner: StepRunner
    session: Callable[[], PostgresSession]
    make: Callable[[psycopg.Connection], None] = lambda _: None
    made: Callable[[], None] = lambda: None
    stop: threading.Event = field(default_factory=threading.Event)
    look: Callable[[], None] = lambda: None
    lock_wait: float = LOCK_WAIT_S

    def run(self, *, anew: bool = False) -> OwnLoad:
        """Loads the table, or goes on; returns its state then, *live* unless stopped.

        Args:
            anew: begins anew where a load of the table was left half done.

        Raises:
            SettingsError: source or target are behind a pooler in transaction mode.
            SourceError: no point could be made, the slot or the table is missing, or snapshots were lost again.
            CatalogueError: the target is not live, or foreign keys cannot be dropped.
            TargetRejectedError: rows, deltas or foreign keys were refused; the message has the causes.
            TargetFencedError: another load of the table has taken over.
            TargetError: another load of the table runs.
            TargetUnavailableError: the target or the source did not answer for a while.
            SparkUnavailableError: Spark jobs failed again and again.
        """
        check_ready(tuple(look_at_sessions(self.ends)))
        load = TableLoad(self.connection, self.ends.log_partition, self.table)
        load.steps.create()
        for _ in range(SNAPSHOTS):
            try:
                return self._run(load, anew=anew)
            except LostSnapshotError as error:
                event(_LOG, logging.WARNING, "the source's snapshot is gone: the load begins anew", cause=error)
                anew = True
        raise SourceError(f"the source's snapshot was lost {SNAPSHOTS} times: start again when that is over")

    def _run(self, load: TableLoad, *, anew: bool) -> OwnLoad:
        if anew or not goes_on(partial(lives, self.ends.source.url), load.steps, load.steps.found()):
            self._begin(load)
        try:
            self._nudge()
            self._copy(load)
            live = not self.stop.is_set() and self._catch_up(load)
        except TargetRejectedError as error:
            load.enter(OwnLoadState.FAILED, str(error))
            raise
        if live:
            make_foreign_keys(self.connection, self.ends.log_partition)
        found = load.found()
        assert found is not None, "the load has begun"
        return found

    def _own_ends(self, load: TableLoad) -> ReplicaEnds:
        """Returns the ends under the name of the table's load, by which its tasks and its keeper find its rows."""
        return replace(self.ends, log_partition=load.name)

    def _begin(self, load: TableLoad) -> None:
        check_slot(self.ends.source)
        dropped = load.begin(self.make)
        for name in dropped:
            event(_LOG, logging.INFO, "foreign key dropped until its tables are live", constraint=name)
        self.made()
        table = self._published()
        generation = load.steps.generation
        point = kept_snapshot(self._own_ends(load), generation, [part.oid for part in table.parts], self.lock_wait)
        # Its foreign keys are off, and others do not matter: no order is needed.
        steps = load_steps([table], Catalogue({}), self.runner.parallelism)
        load.plan(point, table, steps)
        event(_LOG, logging.INFO, "load begins", table=table.full_name, position=format_lsn(point.lsn),
              ranges=len(steps), generation=generation)  # fmt: skip

    def _published(self) -> ReplicaTable:
        with source_session(self.ends.source.url) as source:
            tables = published(source, self.ends.source.publication)
        found = next((table for table in tables if table.place == self.table), None)
        if found is None:
            raise SourceError(f"publication {self.ends.source.publication} has no table {'.'.join(self.table)}")
        return found

    def _nudge(self) -> None:
        """Writes a transaction behind the point, by which the apply job passes it also where nothing else commits."""
        try:
            with source_session(self.ends.source.url) as source:
                source.execute("SET synchronous_commit = local")
                source.execute(_NUDGE, (PREFIX,))
        except SourceError as error:
            event(_LOG, logging.WARNING, "no heartbeat: the table goes live behind the next transaction", cause=error)

    def _copy(self, load: TableLoad) -> None:
        now = load.steps.found()
        assert now is not None, "the load has begun"
        if now.copies:
            load.enter(OwnLoadState.LOADING)
        task = LoadTask(self._own_ends(load), load.steps.generation, now.snapshot)
        StepRounds(load.steps, self.runner, self.stop, self.look).run(task)

    def _catch_up(self, load: TableLoad) -> bool:
        load.enter(OwnLoadState.CATCHING_UP)
        found = load.found()
        assert found is not None
        assert found.position is not None
        try:
            check_slot(self.ends.source)
        except SourceError:
            load.steps.void()
            raise
        with closing(self.session()) as session:
            return CatchUp(load, found.position, session, self.stop, self.look).run()
