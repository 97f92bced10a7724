"""MariaDB and MySQL as a target: what the apply job's driver does there, each time on a connection of its own."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import pymysql

from kainite.base.errors import CatalogueError, TargetError
from kainite.base.logs import event
from kainite.settings import TargetTriggers
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.grants import grants_of, lacking
from kainite.uow.canonical import canonical_of, is_opaque
from kainite.uow.catalogue.tables import Catalogue, Table
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.hooks import FoundHooks, Hook, HookPolicy, refusal, tell_firing
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.mariadb import fence_row, ledger, log_tables, prepared
from kainite_spark.targets.mariadb.errors import about_own_tables
from kainite_spark.targets.mariadb.firing_triggers import found_triggers
from kainite_spark.targets.mariadb.loaded_positions import is_cut_over, refuse_while_loading
from kainite_spark.targets.mariadb.packet import FailedStatementError, send
from kainite_spark.targets.mariadb.present_tables import why_not_transactional
from kainite_spark.targets.mariadb.rendering import quoted, table_name
from kainite_spark.targets.mariadb.session import MariadbSession, beginning
from kainite_spark.targets.mark import TargetMark
from kainite_spark.targets.preparing import PreparedPart
from kainite_spark.targets.schema import Schema

_LOG = logging.getLogger(__name__)

_FENCE_WAIT_S = 30
"""How long the driver waits for the transactions of a micro-batch before, in seconds."""

_PREPARES: Final = "InnoDB"
"""The storage engine whose transactions are prepared; a crash may leave those over two engines in one of them."""

_ENGINES = "SELECT table_name, engine FROM information_schema.tables WHERE table_schema = %s"


@dataclass(frozen=True, slots=True)
class MariadbTarget:
    """A database of MariaDB or MySQL; implements :class:`kainite_spark.targets.preparing.PreparingTarget`.

    Attributes:
        url: ``mariadb://…``; ``repr`` leaves it out, since it may hold a password.
        schema: the database's tables.
        policy: which triggers may fire.
    """

    url: str = field(repr=False)
    schema: Schema
    policy: HookPolicy = field(default_factory=HookPolicy)

    def connect(self) -> MariadbSession:
        session = MariadbSession(self.url, self.schema, self.policy)
        session.open()
        return session

    def prepare(self, log_partition: str, catalogue: Catalogue) -> None:
        Schema.of(catalogue)
        with self._connection() as connection:
            send(connection, ledger.CREATE)
            if is_cut_over(connection, log_partition):
                return  # whoever begins there is refused by its fence
            self._check_tables(connection)
            found = found_triggers(connection, self.schema.catalogue)
        if why := self._why_refused(found.firing):
            raise CatalogueError(why)
        tell_firing(found.firing)
        _tell_coarse_keys(catalogue)

    def take_tables(self, taking: LogTables) -> None:
        with self._transaction() as connection:
            log_tables.take(connection, taking)

    def give_up_tables(self, fence: Fence, taking: LogTables, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            fence_row.advance(connection, fence, mark, lowest=fence.micro_batch - 1)
            log_tables.give_up(connection, taking)

    def hooks(self) -> FoundHooks:
        with self._connection() as connection:
            self._check_tables(connection)
            found = found_triggers(connection, self.schema.catalogue)
        return replace(found, why_refused=self._why_refused(found.firing))

    def switch_on(self) -> Sequence[Hook]:
        """Does nothing: MariaDB's triggers cannot be switched off."""
        return ()

    def raise_generation(self, log_partition: str, generation: int, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            fence_row.raise_generation(connection, log_partition, generation, mark)
            refuse_while_loading(connection, log_partition)  # behind the lock of the fence, which a load closes

    def begin_micro_batch(self, fence: Fence, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            fence_row.advance(connection, fence, mark, lowest=fence.micro_batch)

    def close_micro_batch(self, fence: Fence, tids: Collection[int], mark: TargetMark | None = None) -> set[int]:
        with self._transaction() as connection:
            # Strictly forward: a number that tasks may have shuts nobody out.
            fence_row.advance(connection, fence, mark, lowest=fence.micro_batch - 1)
            # A statement of its own, whose snapshot has what the tasks committed while the fence waited for them.
            return fence_row.applied(connection, fence.log_partition, tids)

    def require_preparing(self) -> None:
        with self._connection() as connection:
            prepared.require_preparing(connection)
            engines = _engines(connection, self.schema.catalogue)
        for table in self.schema.catalogue.tables.values():
            engine = engines.get((table.schema, table.bare_name))
            if engine is not None and engine != _PREPARES:
                raise TargetError(
                    f"table {table.name} has the storage engine {engine}, and targetCommit=atomic needs {_PREPARES}:"
                    f" ALTER TABLE {table.name} ENGINE = {_PREPARES}"
                )

    def ledger_place(self) -> str:
        with self._connection() as connection:
            return prepared.ledger_place(connection)

    def prepared(self, prefix: str) -> Sequence[PreparedPart]:
        with self._connection() as connection:
            return prepared.prepared_under(connection, prefix)

    def finish(self, gid: str, *, committed: bool) -> bool:
        with self._connection() as connection:
            return prepared.finish(connection, gid, committed=committed)

    def trim(self, fence: Fence, below: int, mark: TargetMark | None = None) -> int:
        with self._transaction() as connection:
            fence_row.advance(connection, fence, mark, lowest=fence.micro_batch - 1)
            return fence_row.execute(connection, ledger.TRIM, fence.log_partition, below)

    def prepare_common_mark(self) -> None:
        with self._connection() as connection:
            send(connection, (ledger.CREATE_MARK,))

    def note_common_mark(self, fence: Fence, everywhere_below: int, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            fence_row.advance(connection, fence, mark, lowest=fence.micro_batch - 1)
            fence_row.execute(connection, ledger.NOTE_MARK, fence.log_partition, everywhere_below)

    def close(self) -> None:
        """Does nothing: each call has a connection of its own."""

    def _why_refused(self, firing: Sequence[Hook]) -> str | None:
        unwanted = self.policy.unwanted(firing)
        if not unwanted:
            return None
        return _undisabled(unwanted) if self.policy.triggers is TargetTriggers.OFF else refusal(unwanted)

    def _check_tables(self, connection: pymysql.connections.Connection) -> None:
        """Checks that the tables have transactions, and that the role sees their triggers.

        Raises:
            CatalogueError: a table has no transactions, or the role may not see its triggers.
        """
        with connection.cursor() as cursor:
            cursor.execute("SHOW GRANTS")
            grants = grants_of(line for (line,) in cursor.fetchall())
        engines = _engines(connection, self.schema.catalogue)
        for table in self.schema.catalogue.tables.values():
            if lacking(grants, ["TRIGGER"], table.schema or "", table.bare_name):
                raise CatalogueError(_unseen(table))
            if why := why_not_transactional(table.name, engines.get((table.schema, table.bare_name))):
                raise CatalogueError(why)

    @contextmanager
    def _connection(self) -> Iterator[pymysql.connections.Connection]:
        try:
            with closing(connect(self.url)) as connection:
                yield connection
        except FailedStatementError as failed:
            raise about_own_tables(failed.error) from failed.error
        except pymysql.Error as error:
            raise about_own_tables(error) from error

    @contextmanager
    def _transaction(self) -> Iterator[pymysql.connections.Connection]:
        """Runs a short transaction; closing the connection in its middle rolls it back."""
        with self._connection() as connection:
            send(connection, beginning(_FENCE_WAIT_S))
            yield connection
            connection.commit()


def _engines(
    connection: pymysql.connections.Connection, catalogue: Catalogue
) -> Mapping[tuple[str | None, str], str | None]:
    """Returns the storage engines of the tables, by schema and name."""
    found: dict[tuple[str | None, str], str | None] = {}
    with connection.cursor() as cursor:
        for schema in {table.schema for table in catalogue.tables.values()}:
            cursor.execute(_ENGINES, (schema,))
            found |= {(schema, name): engine for name, engine in cursor.fetchall()}
    return found


def _unseen(table: Table) -> str:
    return (
        f"the target's role does not see which triggers {table.name} has, and they would fire: "
        f"GRANT TRIGGER ON {table_name(table)} to it, or on {quoted(table.schema or '')}.*"
    )


def _undisabled(unwanted: Sequence[Hook]) -> str:
    dropped = "; ".join(f"DROP TRIGGER {quoted(hook.name)}" for hook in unwanted)
    return (
        f"targetTriggers=off: MariaDB cannot switch a trigger off. Drop them, and make them again afterwards: {dropped}"
    )


def _tell_coarse_keys(catalogue: Catalogue) -> None:
    """Logs, once a start, the tables of which all units wait for each other: no part of the key can be compared."""
    for table in catalogue.tables.values():
        columns = [table.columns[name] for name in table.primary_key]
        if columns and all(is_opaque(canonical_of([column])) for column in columns):
            types = ", ".join(f"{column.name} {column.type}" for column in columns)
            event(_LOG, logging.WARNING, "units of a table wait for each other", table=table.name, key=types,
                  why="its key's type or collation is none that Kainite compares")  # fmt: skip
