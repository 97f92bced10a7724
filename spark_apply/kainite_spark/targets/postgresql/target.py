"""PostgreSQL as a target: what the driver of an apply job does there; a task has a
:class:`~kainite_spark.targets.postgresql.session.PostgresSession`.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

import psycopg

from kainite.base.errors import CatalogueError
from kainite.base.logs import event
from kainite.settings import TargetTriggers
from kainite.targets.postgresql.connection import connect
from kainite.targets.postgresql.pooling import OWN_POOL, leads_through_pooler
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.driver_connection import DriverConnection
from kainite_spark.targets.fence import Fence, fence_lost, outranked
from kainite_spark.targets.hooks import FoundHooks, Hook, HookPolicy, refusal, tell_firing, tell_switched_off
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.mark import TargetMark, check_mark
from kainite_spark.targets.postgresql import ledger, log_tables, prepared
from kainite_spark.targets.postgresql.errors import about_own_tables
from kainite_spark.targets.postgresql.firing_hooks import firing, found_hooks, reached
from kainite_spark.targets.postgresql.hook_switch import not_ours_to_disable, switch_off, switch_on, switched_off
from kainite_spark.targets.postgresql.loaded_tables import is_cut_over, refuse_while_loading
from kainite_spark.targets.postgresql.session import PostgresSession
from kainite_spark.targets.postgresql.transactions import FENCE_WAIT_S, opened, pin
from kainite_spark.targets.preparing import PreparedPart
from kainite_spark.targets.schema import Schema

_LOG = logging.getLogger(__name__)

_ELSEWHERE = """
    SELECT array_agg(relnamespace::regnamespace::text ORDER BY relnamespace) FROM pg_class
    WHERE relname = 'kainite_fence' AND relkind IN ('r', 'p') HAVING to_regclass('kainite_fence') IS NULL"""

# Two sessions that run CREATE TABLE IF NOT EXISTS at the same time may fail in the system catalogue.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtext('kainite_applied'))"


@dataclass(frozen=True, slots=True)
class PostgresTarget:
    """A PostgreSQL database; implements :class:`kainite_spark.targets.preparing.PreparingTarget`.

    Attributes:
        url: ``postgresql://…``, as libpq takes it; ``repr`` leaves it out, since it may hold a password.
        schema: the database's tables.
        policy: which triggers and rules may fire.
        driver: the connection of all methods but ``connect``, which one thread calls.
    """

    url: str = field(repr=False)
    schema: Schema
    policy: HookPolicy = field(default_factory=HookPolicy)
    driver: DriverConnection[psycopg.Connection] = field(default_factory=DriverConnection, repr=False, compare=False)

    def connect(self) -> PostgresSession:
        session = PostgresSession(self.url, self.schema, self.policy)
        session.open()
        return session

    def prepare(self, log_partition: str, catalogue: Catalogue) -> None:
        Schema.of(catalogue)
        self._tell_pooler()
        with self._transaction() as connection:
            connection.execute(_ONE_AT_A_TIME)
            elsewhere = connection.execute(_ELSEWHERE).fetchone()
            if elsewhere is not None and elsewhere[0]:
                told = "Kainite's tables are in other schemas, and are made anew"
                event(_LOG, logging.WARNING, told, schemas=", ".join(elsewhere[0]))
            connection.execute(ledger.CREATE_APPLIED)
            connection.execute(ledger.CREATE_FENCE)
            self._look_at_hooks(connection, log_partition)

    def take_tables(self, taking: LogTables) -> None:
        with self._transaction() as connection:
            connection.execute(_ONE_AT_A_TIME)
            log_tables.take(connection, taking)

    def give_up_tables(self, fence: Fence, taking: LogTables, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            _advance(connection, ledger.CLOSE_MICRO_BATCH, fence, mark)
            log_tables.give_up(connection, taking)

    def hooks(self) -> FoundHooks:
        with self._transaction() as connection:
            where = reached(connection, self.schema.catalogue)
            fire = firing(connection, where)
            found = found_hooks(fire, switched_off(connection))
        unwanted = self.policy.unwanted(found.firing)
        if self.policy.triggers is TargetTriggers.OFF:
            return replace(found, why_refused=not_ours_to_disable(fire, unwanted))
        return replace(found, why_refused=refusal(unwanted) if unwanted else None)

    def switch_on(self) -> Sequence[Hook]:
        with self._transaction() as connection:
            connection.execute(_ONE_AT_A_TIME)
            return switch_on(connection)

    def _tell_pooler(self) -> None:
        try:
            pooled = leads_through_pooler(lambda: connect(self.url, "kainite apply"))
        except psycopg.Error as error:
            raise about_own_tables(error) from error
        if pooled:
            event(_LOG, logging.WARNING, "the target is behind a pooler in transaction mode", remedy=OWN_POOL)

    def _look_at_hooks(self, connection: psycopg.Connection, log_partition: str) -> None:
        """Switches off what may not fire, if the policy says so; refuses what is left of it.

        Of a replica that was cut over nothing is touched: whoever begins there is refused by its fence. Of a replica of
        another log in the same database that was cut over, nothing is refused: its triggers fire for others.
        """
        if is_cut_over(connection, log_partition):
            return
        where = reached(connection, self.schema.catalogue)
        if self.policy.triggers is TargetTriggers.OFF:
            tell_switched_off(switch_off(connection, where, self.policy))
        firing_now = tuple(each.hook for each in firing(connection, where))
        if unwanted := self.policy.unwanted(firing_now):
            raise CatalogueError(refusal(unwanted))
        tell_firing(firing_now)

    def raise_generation(self, log_partition: str, generation: int, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            sent = _compared(connection, log_partition, mark, ledger.RAISE_GENERATION, (log_partition, generation))
            if sent.rowcount != 1:
                raise outranked(log_partition, generation)
            refuse_while_loading(connection, log_partition)

    def begin_micro_batch(self, fence: Fence, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            _advance(connection, ledger.BEGIN_MICRO_BATCH, fence, mark)

    def close_micro_batch(self, fence: Fence, tids: Collection[int], mark: TargetMark | None = None) -> set[int]:
        with self._transaction() as connection:
            _advance(connection, ledger.CLOSE_MICRO_BATCH, fence, mark)
            # A statement of its own, whose snapshot has what the tasks committed while the fence waited for them.
            asked = fence.log_partition, ledger.array_of_numbers(tids)
            return {tid for (tid,) in connection.execute(ledger.APPLIED, asked)}

    def require_preparing(self) -> None:
        with self._transaction() as connection:
            prepared.require_preparing(connection)

    def ledger_place(self) -> str:
        with self._transaction() as connection:
            return prepared.ledger_place(connection)

    def prepared(self, prefix: str) -> Sequence[PreparedPart]:
        with self._transaction() as connection:
            return prepared.prepared_under(connection, prefix)

    def finish(self, gid: str, *, committed: bool) -> bool:
        with closing(opened(self.url)) as connection:  # one without a transaction
            try:
                connection.autocommit = True
                return prepared.finish(connection, gid, committed=committed)
            except psycopg.Error as error:
                raise about_own_tables(error) from error

    def trim(self, fence: Fence, below: int, mark: TargetMark | None = None) -> int:
        with self._transaction() as connection:
            _advance(connection, ledger.CLOSE_MICRO_BATCH, fence, mark)
            return connection.execute(ledger.TRIM, (fence.log_partition, below)).rowcount

    def prepare_common_mark(self) -> None:
        with self._transaction() as connection:
            connection.execute(_ONE_AT_A_TIME)
            connection.execute(ledger.CREATE_MARK)

    def note_common_mark(self, fence: Fence, everywhere_below: int, mark: TargetMark | None = None) -> None:
        with self._transaction() as connection:
            _advance(connection, ledger.CLOSE_MICRO_BATCH, fence, mark)
            connection.execute(ledger.NOTE_MARK, (fence.log_partition, everywhere_below))

    def close(self) -> None:
        self.driver.close()

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection]:
        """Runs a short transaction on the driver's connection."""
        try:
            with self.driver.transaction(lambda: opened(self.url)) as connection:
                pin(connection, FENCE_WAIT_S)
                yield connection
        except psycopg.Error as error:
            raise about_own_tables(error) from error


def _advance(connection: psycopg.Connection, sql: str, fence: Fence, mark: TargetMark | None) -> None:
    values = (fence.micro_batch, fence.log_partition, fence.generation, fence.micro_batch)
    if _compared(connection, fence.log_partition, mark, sql, values).rowcount != 1:
        raise fence_lost(fence)


def _compared(
    connection: psycopg.Connection, log_partition: str, mark: TargetMark | None, sql: str, values: tuple[object, ...]
) -> psycopg.Cursor:
    """Executes what changes the fence, in one round trip with the comparison of the target with the mark.

    Raises:
        TargetWentBackError: the target is behind the mark; the caller rolls back.
    """
    if mark is None:
        return connection.execute(sql, values)
    tids = ledger.array_of_numbers(mark.tids)
    with connection.pipeline():
        there = connection.execute(ledger.LOCK_FENCE, (log_partition,))
        # A statement of its own, whose snapshot has what was committed while the first one waited.
        known = connection.execute(ledger.COUNT_APPLIED, (log_partition, tids))
        changing = connection.execute(sql, values)
    counted = known.fetchone()
    check_mark(log_partition, mark, there.fetchone(), counted[0] if counted else 0)
    return changing
