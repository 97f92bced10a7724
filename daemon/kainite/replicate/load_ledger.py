"""The driver's view of the ledger of a load: begins it, plans it, sees which steps are left, ends it.

:mod:`~kainite.replicate.ledger` has the states, the invariants, and what a crash leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.rows import namedtuple_row

from kainite.base.errors import CatalogueError, TargetError, TargetFencedError
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.replicate import ledger, table_ledger
from kainite.replicate.found_load import WAS_CUT_OVER, CutOverUndone, FoundLoad, PlacedTable, source_name
from kainite.replicate.ledger import LoadState, LoadStep
from kainite.replicate.tables import TableName

T = TypeVar("T")

LOCK_WAIT_S: Final = 30
"""Seconds for which a load waits for transactions of the apply job, and of tasks of a load before."""

# One driver at a time, for the life of its session.
_ONE_DRIVER: Final = "SELECT pg_try_advisory_lock(hashtextextended('kainite load ' || %s, 0))"
LOCK_DRIVER: Final = _ONE_DRIVER.replace("advisory_lock", "advisory_xact_lock")
"""Takes the place of a load's driver until the transaction ends; tells whether there was none."""
_OTHER_DRIVER: Final = """
    SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND (classid::bigint << 32 | objid::bigint) = hashtextextended('kainite load ' || %s, 0)"""


_EXISTING: Final = """
    SELECT place_schema, place_name FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY t (place_schema, place_name, n)
    WHERE to_regclass(format('%%I.%%I', place_schema, place_name)) IS NOT NULL ORDER BY n"""


def found_load(connection: psycopg.Connection, log_partition: str) -> FoundLoad | None:
    """Returns the load of a target; None where Kainite has not loaded it, nor made its tables."""
    if not _one(connection.execute(ledger.IS_THERE))[0]:
        return None
    cursor = connection.cursor(row_factory=namedtuple_row)
    row: Any = cursor.execute(ledger.READ, (log_partition,)).fetchone()
    if row is None:
        return None
    return FoundLoad(
        row.generation,
        LoadState(row.state),
        None if row.position is None else int(row.position),
        row.snapshot,
        row.source,
        row.began_ms,
        row.live_ms,
        row.now_ms,
        row.copies,
    )


class LoadLedger:
    """The ledger of one log's load, for the one driver that holds it.

    Args:
        connection: a session with the target, in autocommit mode, of the driver alone.
        log_partition: the log's name in the target.

    Attributes:
        generation: the generation of this driver's load; 0 before :meth:`begin` or :meth:`go_on`.

    Raises:
        TargetError: another driver holds it.
    """

    def __init__(self, connection: psycopg.Connection, log_partition: str) -> None:
        self._connection = connection
        self._log = log_partition
        self.generation = 0
        if not _one(connection.execute(_ONE_DRIVER, (log_partition,)))[0]:
            found = connection.execute(_OTHER_DRIVER, (log_partition,)).fetchone()
            pid = "another session" if found is None else f"its session in the target has pid {found[0]}"
            raise TargetError(f"another kainite replicate load of {log_partition} runs ({pid}): wait, or end it first")

    def create(self) -> None:
        """Makes the ledger's tables where they are missing."""
        for statement in (*ledger.CREATE, *table_ledger.CREATE):
            self._connection.execute(statement)

    def found(self) -> FoundLoad | None:
        """Returns the load as the ledger has it."""
        return found_load(self._connection, self._log)

    def prepare(self, script: str, steps: Iterable[LoadStep]) -> None:
        """Executes a script that makes the tables, and notes what follows with the load; all or nothing.

        Args:
            script: statements, which may set the session's settings.
            steps: statements for after the rows.

        Raises:
            CatalogueError: the target has been prepared, or loaded, already.
        """
        with self.transaction():
            if self._connection.execute(ledger.PREPARE, (self._log,)).rowcount != 1:
                raise CatalogueError("the target's tables have been made, or loaded, before: kainite replicate status")
            self.note_steps(steps)
            self._connection.execute(script.encode())

    def begin(self, generation: int = -1) -> None:
        """Begins a load: from now on the apply job commits nothing, and no task of an earlier load does.

        Args:
            generation: an apply job's, below which the log has everything that it has as committed.

        Raises:
            CatalogueError: the target was cut over.
        """
        with self.alone():
            self._connection.execute(ledger.CLOSE_FENCE, (self._log, generation))
            self._end_loads_of_tables()
            self.begin_generation()

    def begin_generation(self) -> None:
        """Begins a load in the transaction of the caller, who has shut out all others.

        Raises:
            CatalogueError: the target was cut over.
        """
        row = self._connection.execute(ledger.BEGIN, (self._log,)).fetchone()
        if row is None:
            raise CatalogueError(WAS_CUT_OVER)
        self.generation = row[0]

    def go_on(self) -> None:
        """Goes on with a load that has a point: from now on no task of its earlier driver commits.

        Raises:
            TargetFencedError: the load has no point, or is none.
        """
        with self.alone():
            row = self._connection.execute(ledger.GO_ON, (self._log,)).fetchone()
            if row is None:
                raise self.fenced()
            self.generation = row[0]

    def plan(self, point: ConsistentPoint, tables: Sequence[PlacedTable], steps: Iterable[LoadStep]) -> None:
        """Notes the point and the ranges of a load that has begun; empties tables that an earlier load filled.

        Args:
            point: made after :meth:`begin`.
            tables: the source's tables.
            steps: the ranges.

        Raises:
            CatalogueError: a table has rows that no load has put there.
            TargetFencedError: another driver has begun since.
        """
        lsn = format_lsn(point.lsn)
        with self.transaction():
            values = (lsn, point.snapshot, source_name(point), self._log, self.generation)
            if self._connection.execute(ledger.SET_POINT, values).rowcount != 1:
                raise self.fenced()
            self._empty(tables)
            self._connection.execute(ledger.FORGET_TABLES, (self._log,))
            self._connection.execute(ledger.FORGET_COPIES, (self._log,))
            noted = [table.place for table in tables]
            self._connection.execute(ledger.NOTE_TABLES, (self._log, lsn, *_columns(noted)))
            self.note_steps(steps)

    def left(self, failed: Collection[int] = ()) -> list[int]:
        """Returns the steps of the first stage that is not done, without those that have failed."""
        values = {"log": self._log, "failed": list(failed)}
        return [row[0] for row in self._connection.execute(ledger.LEFT, values)]

    def seen(self) -> None:
        """Notes that the driver lives; raises TargetFencedError where another one has taken over."""
        if self._connection.execute(ledger.SEEN, (self._log, self.generation)).rowcount != 1:
            raise self.fenced()

    def failed(self, step: int, cause: str) -> None:
        """Notes why a step cannot be done."""
        self._connection.execute(ledger.FAILED, (cause, self._log, step))

    def void(self) -> None:
        """Forgets the point: the next load begins anew."""
        self._connection.execute(ledger.VOID, (self._log, self.generation))

    def finish(self) -> None:
        """Makes the load live; raises TargetFencedError where a step is left, or another driver has taken over."""
        if self._connection.execute(ledger.FINISH, (self._log, self.generation)).rowcount != 1:
            raise self.fenced()

    def cut_over(self, last: Callable[[psycopg.Connection], T]) -> T:
        """Shuts the apply job out for good, and makes the target *cut over*; all or nothing.

        Args:
            last: called in the transaction, when nobody applies any more; what it raises leaves the target live.

        Raises:
            TargetFencedError: the target is not live, or foreign keys are off and nobody has tried to make them.
        """
        with self.transaction():
            self._connection.execute(ledger.CLOSE_FENCE, (self._log, -1))
            done = last(self._connection)
            if self._connection.execute(ledger.CUT_OVER, (self._log,)).rowcount != 1:
                raise self.fenced()
            return done

    def make_live_again(self) -> CutOverUndone | None:
        """Takes a cut-over back; returns None where there was none."""
        row = self._connection.execute(ledger.MAKE_LIVE_AGAIN, (self._log,)).fetchone()
        return None if row is None else CutOverUndone(int(row[0]))

    def names_of(self, steps: Collection[int]) -> Mapping[int, str]:
        """Returns the tables of steps."""
        return {row.step: row.name for row in self.rows(ledger.NAMES, self._log, list(steps))}

    def rows(self, query: Any, *values: object) -> list[Any]:
        """Returns the rows of a query, by the names of its columns."""
        return self._connection.cursor(row_factory=namedtuple_row).execute(query, values or None).fetchall()

    def _empty(self, tables: Sequence[PlacedTable]) -> None:
        """Empties what an earlier load of this ledger filled; refuses rows that came from elsewhere."""
        rows = self._connection.execute(ledger.POSITIONS, (self._log,)).fetchall()
        filled = {(schema, name) for schema, name, *_ in rows}
        if existing := sorted(_existing(self._connection, filled)):
            names = sql.SQL(", ").join(sql.Identifier(*name) for name in existing)
            try:
                self._connection.execute(sql.SQL("TRUNCATE {}").format(names))
            except errors.FeatureNotSupported as error:
                raise CatalogueError(f"tables that were loaded before cannot be emptied: {error.diag.message_primary}"
                                     f" ({error.diag.message_detail})") from None  # fmt: skip
        if full := with_rows(self._connection, [table.place for table in tables if table.place not in filled]):
            names_of = ", ".join(f"{schema}.{name}" for schema, name in full)
            raise CatalogueError(f"the target has rows that no load has put there, in {names_of}: TRUNCATE them")

    def note_steps(self, steps: Iterable[LoadStep]) -> None:
        """Notes steps that are to be done, in the caller's transaction."""
        noted = tuple(steps)
        numbers, stages = [step.number for step in noted], [step.stage for step in noted]
        schemas, names = [step.schema for step in noted], [step.table for step in noted]
        # One statement: executemany of psycopg 3.3 hides a connection that is lost in it behind an AssertionError.
        works = [ledger.encoded(step.work) for step in noted]
        self._connection.execute(ledger.NOTE_STEPS, (self._log, numbers, stages, schemas, names, works))

    def _end_loads_of_tables(self) -> None:
        """Ends the loads of single tables, whose rows the load of everything brings; their foreign keys stay noted."""
        begins = table_ledger.names_begin(self._log)
        self._connection.execute(table_ledger.END_OWN_LOADS, (begins,))
        self._connection.execute(table_ledger.END_OWN_STEPS, (begins,))
        self._connection.execute(table_ledger.FORGET_ALL_HELD, (self._log,))

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Runs a transaction that holds the load against all tasks; ends the sessions of those that were left."""
        with self.transaction():
            self._connection.execute(ledger.END_SESSIONS, (ledger.session_name(self._log),))
            self._connection.execute(ledger.LOCK, (self._log,))
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._connection.transaction():
            self._connection.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'")
            yield

    def fenced(self) -> TargetFencedError:
        """Returns the error of a driver that another one has shut out."""
        return TargetFencedError(
            f"generation {self.generation} of the load of {self._log} may not write any more: another kainite replicate"
            " load has begun, or there is nothing to go on with; kainite replicate status tells"
        )


def with_rows(connection: psycopg.Connection, tables: Iterable[TableName]) -> list[TableName]:
    """Returns those of the tables that have rows, and exist."""
    existing = _existing(connection, tables)
    asked = [sql.SQL("EXISTS (SELECT FROM {})").format(sql.Identifier(*name)) for name in existing]
    found = _one(connection.execute(sql.SQL("SELECT ARRAY[{}]::boolean[]").format(sql.SQL(", ").join(asked))))[0]
    return [name for name, has_rows in zip(existing, found, strict=True) if has_rows]


def _existing(connection: psycopg.Connection, tables: Iterable[TableName]) -> list[TableName]:
    schemas, names = _columns(tables)
    return connection.execute(_EXISTING, (schemas, names)).fetchall()


def _columns(tables: Iterable[TableName]) -> tuple[list[str], list[str]]:
    places = tuple(tables)
    return [schema for schema, _ in places], [name for _, name in places]


def _one(cursor: psycopg.Cursor) -> Any:
    row = cursor.fetchone()
    assert row is not None, "the statement returns a row"
    return row
