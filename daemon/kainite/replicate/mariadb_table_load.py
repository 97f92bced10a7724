"""The driver's view of the load of one table of a MariaDB target: begins it, plans it, catches up, makes it live.

:mod:`~kainite.replicate.mariadb_table_ledger` has the states, the invariants, and what a crash leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import pymysql

from kainite.base.errors import CatalogueError, SourceError
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.replicate import mariadb_ledger as ledger
from kainite.replicate import mariadb_table_ledger as table_ledger
from kainite.replicate.found_load import source_name
from kainite.replicate.ledger import LoadState, LoadStep
from kainite.replicate.mariadb_foreign_keys import make_again, take_off
from kainite.replicate.mariadb_foreign_keys_lock import foreign_keys_alone
from kainite.replicate.mariadb_load_ledger import MariadbLoadLedger
from kainite.replicate.table_ledger import OwnLoadState, load_name
from kainite.replicate.table_load import PIECES_AT_ONCE, HeldPiece, HeldUnit, OwnLoad, by_unit, next_places
from kainite.replicate.tables import TableName
from kainite.targets.mariadb.rows import rows_of

_IDLE_S: Final = 60
_ENDS_IDLE: Final = "SET SESSION idle_transaction_timeout = {}"


class MariadbTableLoad:
    """The load of one table, for the one driver that holds it; a :class:`.load_target.DrivenTable`.

    Args:
        connection: a session with the target, in autocommit mode, of the driver alone.
        log_partition: the log's name in the target.
        table: the table.

    Attributes:
        name: the load's name in the ledger.
        steps: the load's steps and its generation.

    Raises:
        TargetError: another driver holds it.
    """

    def __init__(self, connection: pymysql.connections.Connection, log_partition: str, table: TableName) -> None:
        self.name = load_name(log_partition, table)
        self.steps = MariadbLoadLedger(connection, self.name)
        self._connection = connection
        self._log = log_partition
        self._table = table
        self._place = (log_partition, *table)

    def found(self) -> OwnLoad | None:
        """Returns the table's row; None where the table was never loaded."""
        rows = rows_of(self._connection, table_ledger.READ, *self._place)
        if not rows:
            return None
        state, position, reached, cause = rows[0]
        return OwnLoad(OwnLoadState(state), _place(position), _place(reached), cause)

    def begin(self, make: Callable[[Any], None] = lambda _: None) -> list[str]:
        """Begins the load: from now on the table's deltas are held.

        Args:
            make: makes the table, when its deltas are held.

        Returns:
            The foreign keys that are dropped until the table is live.

        Raises:
            CatalogueError: the target is not live, or refuses the table.
            TargetUnavailableError: somebody else drops or makes foreign keys for long.
            pymysql.Error: a table was locked for long.
        """
        with foreign_keys_alone(self._connection, self._log):
            dropped = self._set_loading()
            try:
                make(self._connection)
            except CatalogueError as error:  # the table's deltas are held by now
                self.enter(OwnLoadState.FAILED, str(error))
                raise
            return [*dropped, *take_off(self._connection, self._log, self._table)]

    def _set_loading(self) -> list[str]:
        """Drops the foreign keys, then sets *loading*; gives them back where it could not. Returns their names."""
        self._check_live()  # nobody cuts the target over from here on: that needs the lock of foreign keys, too
        try:
            dropped = take_off(self._connection, self._log, self._table)
            with self.steps.alone():
                self._execute(table_ledger.RAISE_VERSION, self._log)
                self._check_live()
                self.steps.begin_generation()
                self._execute(table_ledger.SET_LOADING, *self._place)
                self._execute(table_ledger.FORGET_HELD, *self._place)
                self._execute(ledger.FORGET_STEPS, self.name)
        except (CatalogueError, pymysql.Error):
            with suppress(pymysql.Error):  # they stay noted: the next look makes them
                make_again(self._connection, self._log)
            raise
        return dropped

    def plan(self, point: ConsistentPoint, steps: Iterable[LoadStep]) -> None:
        """Empties the table, then notes the point and the ranges.

        Raises:
            TargetFencedError: another driver has begun since.
            SourceError: the target's other tables are of another source.
        """
        source = source_name(point)
        self._check_source(source)
        self.steps.seen()
        self.steps.truncate(self._table)
        with self.steps.transaction():
            values = (point.lsn, point.snapshot, source, self.name, self.steps.generation)
            if self._execute(ledger.SET_POINT, *values) != 1:
                raise self.steps.fenced()
            self._execute(table_ledger.SET_POSITION, point.lsn, *self._place)
            self._execute(ledger.FORGET_STEPS, self.name)
            self.steps.note_steps(steps)

    def enter(self, state: OwnLoadState, cause: str | None = None) -> None:
        """Notes the table's state; raises TargetFencedError where another driver has taken over."""
        with self.steps.transaction():
            self._hold_load()
            self._execute(table_ledger.SET_STATE, state.value, cause, *self._place)

    def held(self) -> Sequence[HeldUnit]:
        """Returns the units that are held longest, whole, as many as are applied in one transaction."""
        sizes = rows_of(self._connection, table_ledger.HELD_PLACES, *self._place, PIECES_AT_ONCE)
        places = next_places([HeldPiece(place, tid, bool(last), size) for place, tid, last, size in sizes])
        if not places:
            return []
        rows = {row[0]: row for row in rows_of(self._connection, table_ledger.HELD, tuple(places))}
        pieces = [HeldPiece(place, tid, bool(last), len(deltas)) for place, tid, last, _, deltas in rows.values()]
        return [
            HeldUnit(
                tuple(one.place for one in unit),
                unit[0].tid,
                rows[unit[0].place][3],
                (b"".join(rows[one.place][4] for one in unit),),
            )
            for unit in by_unit(pieces)
        ]

    @contextmanager
    def nobody_applies(self) -> Iterator[None]:
        """Locks out the apply job's transactions; commits when left, and rolls back at an error.

        The server ends the session of a driver that stands still meanwhile.
        """
        [(before,)] = rows_of(self._connection, "SELECT @@session.idle_transaction_timeout")
        self._connection.query(_ENDS_IDLE.format(_IDLE_S))
        with self.steps.transaction():
            self._execute(table_ledger.RAISE_VERSION, self._log)
            yield
        self._connection.query(_ENDS_IDLE.format(int(before)))

    def go_live(self) -> None:
        """Makes the table live, inside :meth:`nobody_applies`; raises TargetFencedError where it may not be."""
        self._hold_load()
        if self._execute(table_ledger.GO_LIVE, *self._place) != 1:
            raise self.steps.fenced()
        self.steps.finish()

    def _hold_load(self) -> None:
        """Keeps the load from being begun or gone on with elsewhere, or ended, until the transaction ends."""
        if not rows_of(self._connection, table_ledger.HOLD_LOAD, self.name, self.steps.generation):
            raise self.steps.fenced()

    def _check_live(self) -> None:
        state, _ = self._whole()
        if state not in (None, LoadState.LIVE):
            raise CatalogueError(f"the target is {state}: its tables are loaded by kainite replicate load")

    def _check_source(self, source: str) -> None:
        _, of = self._whole()
        if of is not None and of != source:
            raise SourceError(f"the target was loaded from {of}, and this source is {source}: a replica has one source")

    def _whole(self) -> tuple[str | None, str | None]:
        rows = rows_of(self._connection, table_ledger.WHOLE, self._log)
        return (rows[0][0], rows[0][1]) if rows else (None, None)

    def _execute(self, sql: str, *values: object) -> int:
        with self._connection.cursor() as cursor:
            return cursor.execute(sql, values)


def _place(value: object) -> int | None:
    return None if value is None else int(str(value))
