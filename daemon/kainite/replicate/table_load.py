"""The driver's view of the load of one table: begins it, plans it, catches up, makes it live.

:mod:`~kainite.replicate.table_ledger` has the states, the invariants, and what a crash leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import namedtuple_row

from kainite.base.errors import CatalogueError, SourceError
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.replicate import ledger, table_ledger
from kainite.replicate.foreign_keys import take_off
from kainite.replicate.found_load import source_name
from kainite.replicate.ledger import LoadState, LoadStep
from kainite.replicate.load_ledger import LoadLedger
from kainite.replicate.table_ledger import OwnLoadState, load_name
from kainite.replicate.tables import TableName

HELD_AT_ONCE: Final = 500
"""Most units whose held deltas are applied in one transaction."""

HELD_BYTES: Final = 32 * 2**20
"""Bytes of held deltas behind which no further unit is taken into a transaction: they are in memory together."""

PIECES_AT_ONCE: Final = 10_000
"""Pieces that are looked at, to choose a transaction's; no unit has so many."""


@dataclass(frozen=True, slots=True)
class OwnLoad:
    """A table's row in the ledger.

    Attributes:
        state: its state.
        position: its consistent point, a place of the source (:mod:`kainite.capture.places`); None before it is known.
        reached: the latest place that the apply job has applied since the load began, up to the first one from the
            point on; None before the first one.
        cause: why it failed; None where it did not.
    """

    state: OwnLoadState
    position: int | None
    reached: int | None
    cause: str | None


@dataclass(frozen=True, slots=True)
class HeldUnit:
    """What is held of one unit for a table.

    Attributes:
        places: where its pieces stand.
        tid: the unit's id.
        uow: its name.
        pieces: its deltas, as they were written.
    """

    places: tuple[int, ...]
    tid: int
    uow: str
    pieces: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class HeldPiece:
    """A piece of what is held of a unit.

    Attributes:
        place: where it stands.
        tid: the unit's id.
        last: whether it is the unit's last one.
        size: its bytes.
    """

    place: int
    tid: int
    last: bool
    size: int


def is_full(held: Sequence[HeldUnit]) -> bool:
    """Tells whether more may be held than was returned."""
    return len(held) == HELD_AT_ONCE or sum(len(piece) for one in held for piece in one.pieces) >= HELD_BYTES


class TableLoad:
    """The load of one table, for the one driver that holds it.

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

    def __init__(self, connection: psycopg.Connection, log_partition: str, table: TableName) -> None:
        self.name = load_name(log_partition, table)
        self.steps = LoadLedger(connection, self.name)
        self._connection = connection
        self._log = log_partition
        self._table = table
        self._place = (log_partition, *table)

    def found(self) -> OwnLoad | None:
        """Returns the table's row; None where the table was never loaded."""
        row: Any = self._cursor().execute(table_ledger.READ, self._place).fetchone()
        return None if row is None else OwnLoad(OwnLoadState(row.state), row.position, row.reached, row.cause)

    def begin(self, make: Callable[[psycopg.Connection], None] = lambda _: None) -> list[str]:
        """Begins the load: from now on the table's deltas are held.

        Args:
            make: makes the table, in the same transaction.

        Returns:
            The foreign keys that are dropped until the table is live.

        Raises:
            CatalogueError: the target is not live; or foreign keys of the table cannot be dropped.
        """
        with self.steps.alone():
            self._connection.execute(table_ledger.RAISE_VERSION, (self._log,))
            whole = self._connection.execute(table_ledger.WHOLE, (self._log,)).fetchone()
            if whole is not None and whole[0] != LoadState.LIVE:
                raise CatalogueError(f"the target is {whole[0]}: its tables are loaded by kainite replicate load")
            make(self._connection)
            self.steps.begin_generation()
            self._connection.execute(table_ledger.SET_LOADING, self._place)
            self._connection.execute(table_ledger.FORGET_HELD, self._place)
            self._connection.execute(ledger.FORGET_COPIES, (self.name,))
            return take_off(self._connection, self._log, self._table)

    def plan(self, point: ConsistentPoint, steps: Iterable[LoadStep]) -> None:
        """Notes the point and the ranges, and empties the table.

        Raises:
            TargetFencedError: another driver has begun since.
            SourceError: the target's other tables are of another source.
        """
        lsn, source = format_lsn(point.lsn), source_name(point)
        with self.steps.transaction():
            whole = self._connection.execute(table_ledger.WHOLE, (self._log,)).fetchone()
            if whole is not None and whole[1] is not None and whole[1] != source:
                raise SourceError(f"the target was loaded from {whole[1]}, and this source is {source}: a replica has"
                                  " one source")  # fmt: skip
            values = (lsn, point.snapshot, source, self.name, self.steps.generation)
            if self._connection.execute(ledger.SET_POINT, values).rowcount != 1:
                raise self.steps.fenced()
            self._connection.execute(table_ledger.SET_POSITION, (lsn, *self._place))
            self._connection.execute(sql.SQL("TRUNCATE {}").format(sql.Identifier(*self._table)))
            self._connection.execute(ledger.FORGET_COPIES, (self.name,))
            self.steps.note_steps(steps)

    def enter(self, state: OwnLoadState, cause: str | None = None) -> None:
        """Notes the table's state; raises TargetFencedError where another driver has taken over."""
        with self.steps.transaction():
            self.steps.seen()
            self._connection.execute(table_ledger.SET_STATE, (state, cause, *self._place))

    def held(self) -> Sequence[HeldUnit]:
        """Returns the units that are held longest, whole: of these :data:`HELD_AT_ONCE`, or :data:`HELD_BYTES`."""
        found: list[HeldUnit] = []
        for pieces in by_unit(self._cursor().execute(table_ledger.HELD, (self._next_places(),))):
            places, contents = tuple(one.place for one in pieces), tuple(one.deltas for one in pieces)
            found.append(HeldUnit(places, pieces[0].tid, pieces[0].uow, contents))
        return found

    def _next_places(self) -> list[int]:
        return next_places(self._cursor().execute(table_ledger.HELD_PLACES, (*self._place, PIECES_AT_ONCE)))

    @contextmanager
    def nobody_applies(self) -> Iterator[None]:
        """Locks out the apply job's transactions; commits when left, and rolls back at an error."""
        with self.steps.transaction():
            self._connection.execute("SET LOCAL idle_in_transaction_session_timeout = '60s'")
            self._connection.execute(table_ledger.RAISE_VERSION, (self._log,))
            yield

    def go_live(self) -> None:
        """Makes the table live, inside :meth:`nobody_applies`; raises TargetFencedError where it may not be."""
        self.steps.seen()
        if self._connection.execute(table_ledger.GO_LIVE, self._place).rowcount != 1:
            raise self.steps.fenced()
        self.steps.finish()

    def _cursor(self) -> psycopg.Cursor[Any]:
        return self._connection.cursor(row_factory=namedtuple_row)


def next_places(pieces: Iterable[Any]) -> list[int]:
    """Returns the places of the units that are applied in the next transaction.

    Args:
        pieces: what is held longest, in its order: :class:`HeldPiece`, or rows with its attributes.
    """
    places: list[int] = []
    size = 0
    for units, unit in enumerate(by_unit(pieces), 1):
        places += (one.place for one in unit)
        size += sum(one.size for one in unit)
        if units == HELD_AT_ONCE or size >= HELD_BYTES:
            break
    return places


def by_unit(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """Yields the pieces of each unit whose last one is there, as soon as that comes.

    Transactions that hold units at the same time take places in turns: between two pieces of one unit may be another's.
    Of units that conflict all pieces of the later one come behind those of the earlier one, which was committed then.
    """
    begun: dict[int, list[Any]] = {}
    for row in rows:
        begun.setdefault(row.tid, []).append(row)
        if row.last:
            yield begun.pop(row.tid)
