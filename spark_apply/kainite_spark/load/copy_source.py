"""What a load needs of its source, whatever kind of database that is; and PostgreSQL as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from kainite.base.errors import SourceError
from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S, ConsistentPoint, lives
from kainite.capture.postgresql.heartbeat import PREFIX
from kainite.replicate.ends import LoadEnds, ReplicaEnds, is_mariadb, source_session
from kainite.replicate.found_load import PlacedTable
from kainite.replicate.keeper import keeper_process, kept_snapshot
from kainite.replicate.ledger import LoadStep
from kainite.replicate.mariadb_plan import check_mariadb_pairs, mariadb_pairs, steps_from_postgresql
from kainite.replicate.own_process import OwnProcess
from kainite.replicate.plan import load_steps
from kainite.replicate.preparation import check_ready
from kainite.replicate.session_checks import look_at_sessions
from kainite.replicate.slot import check_slot
from kainite.replicate.tables import ReplicaTable, TableName, published
from kainite.uow.catalogue.tables import Catalogue

_NUDGE: Final = "SELECT pg_logical_emit_message(true, %s, '')"


class PlannedCopy(Protocol):
    """A load that has not begun."""

    @property
    def tables(self) -> Sequence[PlacedTable]:
        """Returns the tables, as the target names them."""

    @property
    def steps(self) -> Sequence[LoadStep]:
        """Returns what copies them."""

    def point(self, generation: int) -> ConsistentPoint:
        """Makes the consistent point; a process that outlives this one keeps its snapshot.

        Args:
            generation: the load's, which has begun.

        Raises:
            SourceError: there is no point: the source refused, or somebody is in the way.
        """


class CopySource(Protocol):
    """A source, and the way of its rows into a target."""

    @property
    def ends(self) -> LoadEnds:
        """Returns source and target."""

    def check_sessions(self) -> None:
        """Raises SettingsError where a database gives no sessions of one's own."""

    def check(self) -> None:
        """Raises SourceError where what commits from now on does not reach the log."""

    def check_point(self, point: int) -> None:
        """Raises SourceError where changes behind a copy's point are missing, among those that have come so far.

        Args:
            point: a place of the source (:mod:`kainite.capture.places`).
        """

    def plan(self, target: Catalogue, parallelism: int) -> PlannedCopy:
        """Returns what is to be copied.

        Args:
            target: the target's tables, with the foreign keys that are there now.
            parallelism: how many steps run at once.

        Raises:
            SourceError: the source does not answer, or has nothing to be copied.
            CatalogueError: the target lacks a table or a column, or its foreign keys form a cycle.
        """

    def lives(self, snapshot: str) -> bool:
        """Tells whether a snapshot can still be read."""

    def release(self, snapshot: str) -> None:
        """Ends a snapshot that nobody needs any more."""

    def of_table(self, table: TableName, load: str) -> CopySource:
        """Returns the source of one table's own load, which plans that table alone.

        Its foreign keys are off meanwhile, so the plan has no order.

        Args:
            table: the table, as the target names it.
            load: the name of its load, by which tasks and who keeps its snapshot find its rows in the ledger.
        """

    def nudge(self) -> None:
        """Commits a transaction without rows, by which the apply job passes a point also where nothing else commits.

        Raises:
            SourceError: the source refused, or is away.
        """


@dataclass(frozen=True, slots=True)
class _PostgresCopy:
    """Implements :class:`PlannedCopy`."""

    ends: ReplicaEnds
    published: Sequence[ReplicaTable]
    tables: Sequence[PlacedTable]
    steps: Sequence[LoadStep]
    lock_wait: float
    keeper: OwnProcess

    def point(self, generation: int) -> ConsistentPoint:
        oids = [part.oid for table in self.published for part in table.parts]
        return kept_snapshot(self.ends, generation, oids, self.lock_wait, self.keeper)


@dataclass(frozen=True, slots=True)
class PostgresCopySource:
    """Implements :class:`CopySource` with a publication and a slot.

    Attributes:
        ends: source and target.
        lock_wait: seconds to wait for open transactions of the source.
        keeper: starts the processes that keep snapshots; who lets it begin beforehand closes it.
        table: the table of whose own load this is the source; None for all that are published.
    """

    ends: ReplicaEnds
    lock_wait: float = LOCK_WAIT_S
    keeper: OwnProcess = field(default_factory=keeper_process)
    table: TableName | None = None

    def check_sessions(self) -> None:
        check_ready(tuple(look_at_sessions(self.ends)))

    def check(self) -> None:
        check_slot(self.ends.source)

    def check_point(self, point: int) -> None:
        """Does nothing: the extraction ends where the publication loses a table."""

    def plan(self, target: Catalogue, parallelism: int) -> _PostgresCopy:
        tables, order = _published(self.ends), target
        if self.table is not None:
            tables, order = [table for table in tables if table.place == self.table], Catalogue({})
            if not tables:
                raise SourceError(f"publication {self.ends.source.publication} has no table {'.'.join(self.table)}")
        if not is_mariadb(self.ends.target):
            steps = load_steps(tables, order, parallelism)
            return _PostgresCopy(self.ends, tables, tables, steps, self.lock_wait, self.keeper)
        pairs, missing = mariadb_pairs(tables, target)
        check_mariadb_pairs(pairs, missing)
        steps = steps_from_postgresql(pairs, parallelism)
        return _PostgresCopy(self.ends, tables, pairs, steps, self.lock_wait, self.keeper)

    def lives(self, snapshot: str) -> bool:
        return lives(self.ends.source.url, snapshot)

    def release(self, snapshot: str) -> None:
        """Does nothing: who keeps the snapshot looks at the ledger (:mod:`kainite.replicate.keeper`)."""

    def of_table(self, table: TableName, load: str) -> PostgresCopySource:
        return replace(self, ends=replace(self.ends, log_partition=load), table=table)

    def nudge(self) -> None:
        with source_session(self.ends.source.url) as source:
            source.execute("SET synchronous_commit = local")
            source.execute(_NUDGE, (PREFIX,))


def _published(ends: ReplicaEnds) -> Sequence[ReplicaTable]:
    name = ends.source.publication
    with source_session(ends.source.url) as source:
        tables = published(source, name)
    if not tables:
        raise SourceError(f"publication {name} has no table, or does not exist: kainite replicate init tells more")
    return tables
