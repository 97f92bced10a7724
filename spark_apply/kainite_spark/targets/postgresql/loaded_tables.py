"""Leaves out of units what a load has brought, and holds the deltas of tables that are being loaded by themselves.

:mod:`kainite.replicate.ledger` and :mod:`kainite.replicate.table_ledger` say why nothing is lost or doubled by this. A
unit of which nothing is left is acknowledged as any other, so that its number leaves no gap.

A session reads the tables' states once for each *version* of them, which each transaction names with its fence: a
transaction that was made for another version commits nothing, and the session reads them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import psycopg

from kainite.base.errors import TargetUnavailableError
from kainite.capture.places import commit_place_of
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.log.format.deltas import dump_deltas
from kainite.replicate import ledger, table_ledger
from kainite.replicate.table_ledger import OwnLoadState
from kainite.replicate.tables import TableName
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence

SqlAndValues: TypeAlias = tuple[str, tuple[object, ...]]

HELD_PIECE: Final = 8 * 2**20
"""Most bytes of a row that holds deltas, but where one delta alone has more."""

HELD_STATEMENT: Final = 64 * 2**20
"""Bytes of held deltas behind which a statement takes no more: PostgreSQL takes 1 GB, and spells them twice as long."""


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """What a load has made of a table.

    Attributes:
        place: its schema and name.
        point: the LSN as of which it was copied; 0 where it is not known yet.
        state: its state: while it is not live its deltas are held, or dropped where it was given up.
    """

    place: TableName
    point: int
    state: OwnLoadState

    @property
    def live(self) -> bool:
        """Tells whether its deltas are applied."""
        return self.state is OwnLoadState.LIVE

    @property
    def held(self) -> bool:
        """Tells whether its deltas are held."""
        return self.state not in (OwnLoadState.LIVE, OwnLoadState.GIVEN_UP)


@dataclass(frozen=True, slots=True)
class HeldDeltas:
    """The deltas of one unit and one table that is not live."""

    place: TableName
    tid: int
    uow: str
    deltas: tuple[Delta, ...]


@dataclass(frozen=True, slots=True)
class NewUnits:
    """What is to be done for some units.

    Attributes:
        units: the units with the deltas that are to be applied.
        held: the deltas that are to be held.
        reached: the latest commit LSN of the units, where a table that is not live waits to know it; else None.
    """

    units: Sequence[Unit]
    held: Sequence[HeldDeltas] = ()
    reached: int | None = None

    def statements(self, log_partition: str) -> Iterator[SqlAndValues]:
        """Yields what is executed beside the units' own statements, in their transaction."""
        yield from _holding(log_partition, self.held)
        if self.reached is not None:
            lsn = format_lsn(self.reached)
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
    _found: Mapping[str, LoadedTable] = field(default_factory=dict)
    _waits: bool = False  # whether a table is not live, also one that the catalogue does not have yet

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
        self._found = by_name(found, self.catalogue, _default_schema(connection, self.catalogue))
        self._waits = not all(table.live for table in found)
        self._read_for = fence.log_partition, fence.generation
        return self.version != before

    def what_is_new(self, units: Sequence[Unit]) -> NewUnits:
        """Returns the units without the deltas that came with a load, and without those that are held."""
        if not self._waits:
            latest = max((table.point for table in self._found.values()), default=0)
            return NewUnits([self._reduced(unit, latest) for unit in units] if latest else units)
        applied = [replace(unit, deltas=tuple(self._applied(unit))) for unit in units]
        held = [one for unit in units for one in self._held(unit)]
        reached = max((lsn for unit in units if (lsn := commit_place_of(unit.uow)) is not None), default=None)
        return NewUnits(applied, held, reached)

    def _reduced(self, unit: Unit, latest: int) -> Unit:
        lsn = commit_place_of(unit.uow)
        if lsn is None or lsn >= latest:
            return unit
        return replace(unit, deltas=tuple(self._applied(unit)))

    def _applied(self, unit: Unit) -> Iterator[Delta]:
        lsn = commit_place_of(unit.uow)
        for delta in unit.deltas:
            table = self._table(delta.table)
            if table is None or (table.live and (lsn is None or lsn >= table.point)):
                yield delta

    def _held(self, unit: Unit) -> Iterator[HeldDeltas]:
        """Yields a unit's deltas of each table that holds them; those before its point are left out when applied."""
        found: dict[TableName, list[Delta]] = {}
        for delta in unit.deltas:
            table = self._table(delta.table)
            if table is not None and table.held:
                found.setdefault(table.place, []).append(delta)
        for place, deltas in found.items():
            yield HeldDeltas(place, unit.tid, unit.uow, tuple(deltas))

    def _table(self, name: str) -> LoadedTable | None:
        """Returns what is known of a table, which deltas may call with the default schema or without."""
        table = self.catalogue.find(name)
        return None if table is None else self._found.get(table.name)


def loaded_tables(connection: psycopg.Connection, log_partition: str) -> Sequence[LoadedTable]:
    """Returns what loads have made of each table; nothing without a load."""
    if not _is_there(connection):
        return ()
    rows = connection.execute(ledger.POSITIONS, (log_partition,)).fetchall()
    return [LoadedTable((schema, name), lsn or 0, OwnLoadState(state)) for schema, name, lsn, state in rows]


def by_name(found: Sequence[LoadedTable], catalogue: Catalogue, default_schema: str) -> Mapping[str, LoadedTable]:
    """Returns tables by their names in a catalogue, which may lack one that was made since.

    Args:
        found: the tables of loads.
        catalogue: the target's tables.
        default_schema: where a table is that the catalogue names without a schema.
    """
    places = {table.place: table for table in found}
    names = {name: (table.schema or default_schema, table.bare_name) for name, table in catalogue.tables.items()}
    return {name: places[place] for name, place in names.items() if place in places}


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
