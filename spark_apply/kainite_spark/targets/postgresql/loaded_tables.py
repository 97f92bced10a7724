"""Leaves out of units what a load has brought, and holds the deltas of tables that are being loaded by themselves.

:mod:`kainite_spark.targets.held_deltas` says which ones.

A session reads the tables' states once for each *version* of them, which each transaction names with its fence: a
transaction that was made for another version commits nothing, and the session reads them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import psycopg

from kainite.base.errors import TargetUnavailableError
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.log.format.deltas import dump_deltas
from kainite.replicate import ledger, table_ledger
from kainite.replicate.table_ledger import OwnLoadState
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.held_deltas import HeldDeltas, KnownTables, LoadedTable, NewUnits

SqlAndValues: TypeAlias = tuple[str, tuple[object, ...]]

HELD_PIECE: Final = 8 * 2**20
"""Most bytes of a row that holds deltas, but where one delta alone has more."""

HELD_STATEMENT: Final = 64 * 2**20
"""Bytes of held deltas behind which a statement takes no more: PostgreSQL takes 1 GB, and spells them twice as long."""


def own_statements(new: NewUnits, log_partition: str) -> Iterator[SqlAndValues]:
    """Yields what is executed beside the units' own statements, in their transaction."""
    yield from _holding(log_partition, new.held)
    if new.reached is not None:
        lsn = format_lsn(new.reached)
        yield table_ledger.REACHED, (lsn, log_partition, lsn)


def _holding(log_partition: str, held: Sequence[HeldDeltas]) -> Iterator[SqlAndValues]:
    """Yields the statements that hold deltas, in pieces."""
    rows: list[tuple[str, str, int, str, bool, bytes]] = []
    size = 0
    for one in held:
        pieces = _pieces(one.deltas)
        for number, piece in enumerate(pieces, 1):
            rows.append((*one.place, one.tid, one.uow, number == len(pieces), piece))
            size += len(piece)
            if size >= HELD_STATEMENT:
                yield table_ledger.HOLD, (log_partition, *map(list, zip(*rows, strict=True)))
                rows, size = [], 0
    if rows:
        yield table_ledger.HOLD, (log_partition, *map(list, zip(*rows, strict=True)))


def _pieces(deltas: Sequence[Delta]) -> list[bytes]:
    data = dump_deltas(deltas)
    if len(data) <= HELD_PIECE or len(deltas) == 1:
        return [data]
    half = len(deltas) // 2
    return [*_pieces(deltas[:half]), *_pieces(deltas[half:])]


@dataclass(slots=True)
class LoadedTables:
    """What a session knows of a target's loads.

    Attributes:
        catalogue: the target's tables.
        version: the version of the tables' states.
    """

    catalogue: Catalogue
    version: int = 0
    _read_for: tuple[str, int] | None = None
    _known: KnownTables = field(init=False)

    def __post_init__(self) -> None:
        self._known = KnownTables(self.catalogue)

    def is_known(self, fence: Fence) -> bool:
        """Tells whether the states were read for the fence's generation."""
        return self._read_for == (fence.log_partition, fence.generation)

    def read(self, connection: psycopg.Connection, fence: Fence) -> bool:
        """Reads the states of a log's tables; tells whether their version is another one."""
        before = self.version
        row = connection.execute(table_ledger.VERSION, (fence.log_partition,)).fetchone()
        # What changes behind this read has a version of its own, under which nothing is committed before the next read.
        self.version = 0 if row is None else int(row[0])
        found = loaded_tables(connection, fence.log_partition)
        self._known.know(found, _default_schema(connection, self.catalogue))
        self._read_for = fence.log_partition, fence.generation
        return self.version != before

    def what_is_new(self, units: Sequence[Unit]) -> NewUnits:
        """Returns the units without the deltas that came with a load, and without those that are held."""
        return self._known.what_is_new(units)


def loaded_tables(connection: psycopg.Connection, log_partition: str) -> Sequence[LoadedTable]:
    """Returns what loads have made of each table; nothing without a load."""
    if not _is_there(connection):
        return ()
    rows = connection.execute(ledger.POSITIONS, (log_partition,)).fetchall()
    return [LoadedTable((schema, name), lsn or 0, OwnLoadState(state)) for schema, name, lsn, state in rows]


def refuse_while_loading(connection: psycopg.Connection, log_partition: str) -> None:
    """Lets no apply job in before the load is live; in the transaction that has locked the fence's row.

    Raises:
        TargetUnavailableError: the target is being loaded, or was cut over.
    """
    if not _is_there(connection):
        return
    row = connection.execute(ledger.NOT_LIVE, (log_partition,)).fetchone()
    if row is not None and row[0] == ledger.LoadState.CUT_OVER:
        raise TargetUnavailableError(ledger.HANDED_OVER)
    if row is not None:
        raise TargetUnavailableError(
            f"the target's tables are {row[0]}, and not live: units are applied when kainite replicate load has ended"
            " (kainite replicate status)"
        )


def is_cut_over(connection: psycopg.Connection, log_partition: str) -> bool:
    """Tells whether a log's replica was cut over: others write in it, and need its triggers."""
    if not _is_there(connection):
        return False
    row = connection.execute(ledger.IS_CUT_OVER, (log_partition,)).fetchone()
    return row is not None and bool(row[0])


def handed_over(connection: psycopg.Connection) -> frozenset[int]:
    """Returns the ids of the relations that cut-overs have handed over, of whichever log."""
    if not _is_there(connection):
        return frozenset()
    return frozenset(oid for (oid,) in connection.execute(ledger.RELATIONS, {"log": None}))


def loaded_relations(connection: psycopg.Connection, log_partition: str) -> frozenset[int]:
    """Returns the ids of the relations that a log's load has; the ledgers are there."""
    return frozenset(oid for (oid,) in connection.execute(ledger.RELATIONS, {"log": log_partition}))


def others_apply(connection: psycopg.Connection, log_partition: str) -> bool:
    """Tells whether another log's units are applied in the target, where a load has made the ledgers."""
    row = connection.execute(ledger.OTHERS_APPLY, {"log": log_partition}).fetchone()
    return row is not None and bool(row[0])


def _default_schema(connection: psycopg.Connection, catalogue: Catalogue) -> str:
    """Returns the schema in which the session's own statements find a name without one.

    A catalogue's file may leave it out. A table that were not found then would be written although it is being loaded.
    """
    if catalogue.default_schema:
        return catalogue.default_schema
    row = connection.execute("SELECT current_schema()").fetchone()
    return "" if row is None or row[0] is None else str(row[0])


def _is_there(connection: psycopg.Connection) -> bool:
    row = connection.execute(ledger.IS_THERE).fetchone()
    return row is not None and bool(row[0])
