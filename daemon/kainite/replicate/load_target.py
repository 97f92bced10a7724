"""The target of a load, of whichever kind: a session, the ledger in it, and what that tells.

PostgreSQL's is :mod:`kainite.replicate.load_ledger`, MariaDB's :mod:`kainite.replicate.mariadb_load_ledger`, which is
imported where a target is one: its driver need not be installed elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import psycopg

from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.replicate import ledger
from kainite.replicate.ends import is_mariadb, target_session
from kainite.replicate.foreign_keys import make_again
from kainite.replicate.found_load import CutOverUndone, FoundLoad, PlacedTable
from kainite.replicate.ledger import LoadStep
from kainite.replicate.load_ledger import LoadLedger, found_load
from kainite.replicate.status import ReplicaStatus, status_of
from kainite.replicate.table_ledger import OwnLoadState
from kainite.replicate.table_load import HeldUnit, OwnLoad, TableLoad
from kainite.replicate.tables import TableName, described

if TYPE_CHECKING:
    import pymysql

    LoadSession: TypeAlias = psycopg.Connection | pymysql.connections.Connection


T = TypeVar("T")


class DrivenLedger(Protocol):
    """The ledger of one log's load, for the one driver that holds it (:class:`.load_ledger.LoadLedger`)."""

    generation: int

    def create(self) -> None:
        """Makes the ledger's tables where they are missing."""

    def found(self) -> FoundLoad | None:
        """Returns the load as the ledger has it."""

    def begin(self, generation: int = -1) -> None:
        """Begins a load: from now on the apply job commits nothing, and no task of an earlier load does."""

    def go_on(self) -> None:
        """Goes on with a load that has a point: from now on no task of its earlier driver commits."""

    def plan(self, point: ConsistentPoint, tables: Sequence[PlacedTable], steps: Iterable[LoadStep]) -> None:
        """Notes the point and the steps of a load that has begun; empties tables that an earlier load filled."""

    def left(self, failed: Collection[int] = ()) -> list[int]:
        """Returns the steps of the first stage that is not done, without those that have failed."""

    def seen(self) -> None:
        """Notes that the driver lives; raises TargetFencedError where another one has taken over."""

    def failed(self, step: int, cause: str) -> None:
        """Notes why a step cannot be done."""

    def void(self) -> None:
        """Forgets the point: the next load begins anew."""

    def finish(self) -> None:
        """Makes the load live; raises TargetFencedError where a step is left, or another driver has taken over."""

    def cut_over(self, last: Callable[[Any], T]) -> T:
        """Shuts the apply job out for good, and makes the target *cut over*; all or nothing.

        Args:
            last: called with the session in the transaction, when nobody applies any more; what it raises leaves the
                target live.

        Raises:
            TargetFencedError: the target is not live, or foreign keys are off and nobody has tried to make them.
        """

    def make_live_again(self) -> CutOverUndone | None:
        """Takes a cut-over back; returns None where there was none."""

    def names_of(self, steps: Collection[int]) -> Mapping[int, str]:
        """Returns the tables of steps."""


class DrivenTable(Protocol):
    """The load of one table, for the one driver that holds it (:class:`.table_load.TableLoad`)."""

    @property
    def name(self) -> str:
        """Returns the load's name in the ledger."""

    @property
    def steps(self) -> DrivenLedger:
        """Returns the load's steps and its generation."""

    def found(self) -> OwnLoad | None:
        """Returns the table's row; None where the table was never loaded."""

    def begin(self, make: Callable[[Any], None]) -> list[str]:
        """Begins the load; returns the foreign keys that are dropped until the table is live."""

    def plan(self, point: ConsistentPoint, steps: Iterable[LoadStep]) -> None:
        """Notes the point and the ranges, and empties the table."""

    def enter(self, state: OwnLoadState, cause: str | None = None) -> None:
        """Notes the table's state; raises TargetFencedError where another driver has taken over."""

    def held(self) -> Sequence[HeldUnit]:
        """Returns the units that are held longest, whole, as many as are applied in one transaction."""

    def nobody_applies(self) -> AbstractContextManager[None]:
        """Locks out the apply job's transactions; commits when left, and rolls back at an error."""

    def go_live(self) -> None:
        """Makes the table live, inside :meth:`nobody_applies`; raises TargetFencedError where it may not be."""


def load_session(url: str, name: str) -> AbstractContextManager[LoadSession]:
    """Connects to a target, in autocommit mode; raises TargetUnavailableError for any error of the connection."""
    if not is_mariadb(url):
        return target_session(url, name)
    from kainite.replicate.mariadb_target_session import mariadb_session

    return mariadb_session(url)


def driven_ledger(connection: LoadSession, log_partition: str) -> DrivenLedger:
    """Returns the ledger of a log's load in a target; raises TargetError where another driver holds it."""
    if isinstance(connection, psycopg.Connection):
        return LoadLedger(connection, log_partition)
    from kainite.replicate.mariadb_load_ledger import MariadbLoadLedger

    return MariadbLoadLedger(connection, log_partition)


def load_in(connection: LoadSession, log_partition: str) -> FoundLoad | None:
    """Returns the load of a target; None where there is none."""
    if isinstance(connection, psycopg.Connection):
        return found_load(connection, log_partition)
    from kainite.replicate.mariadb_load_ledger import found_mariadb_load

    return found_mariadb_load(connection, log_partition)


def tables_in(connection: LoadSession, log_partition: str) -> list[tuple[str, str, int | None, str]]:
    """Returns schema, name, place of the copy, and state of each table that a load has copied."""
    if isinstance(connection, psycopg.Connection):
        return connection.execute(ledger.POSITIONS, (log_partition,)).fetchall()
    from kainite.replicate import mariadb_table_ledger
    from kainite.targets.mariadb.rows import rows_if_there

    return [tuple(row) for row in rows_if_there(connection, mariadb_table_ledger.STATES, log_partition)]


def status_in(connection: LoadSession, log_partition: str) -> ReplicaStatus:
    """Returns the status of a target."""
    if isinstance(connection, psycopg.Connection):
        return status_of(connection, log_partition)
    from kainite.replicate.mariadb_status import mariadb_status

    return mariadb_status(connection, log_partition)


def driven_table(connection: LoadSession, log_partition: str, table: TableName) -> DrivenTable:
    """Returns the load of one table of a target; raises TargetError where another driver holds it."""
    if isinstance(connection, psycopg.Connection):
        return TableLoad(connection, log_partition, table)
    from kainite.replicate.mariadb_table_load import MariadbTableLoad

    return MariadbTableLoad(connection, log_partition, table)


def has_table(connection: LoadSession, table: TableName) -> bool:
    """Tells whether a target has a table."""
    if isinstance(connection, psycopg.Connection):
        return bool(described(connection, [table]))
    from kainite.replicate.mariadb_target_session import mariadb_has_table

    return mariadb_has_table(connection, table)


def foreign_keys_made(connection: LoadSession, log_partition: str) -> list[str]:
    """Makes foreign keys that are off again, where both tables are live; returns what the target refused."""
    if isinstance(connection, psycopg.Connection):
        return make_again(connection, log_partition)
    from kainite.replicate import mariadb_foreign_keys

    return mariadb_foreign_keys.make_again(connection, log_partition)
