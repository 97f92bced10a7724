"""What is left of units where a load of the target has brought a part, and what of them is held for later. Pure.

:mod:`kainite.replicate.ledger` and :mod:`kainite.replicate.table_ledger` say why nothing is lost or doubled by this. A
unit of which nothing is left is acknowledged as any other, so that its number leaves no gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kainite.capture.places import commit_place_of
from kainite.replicate.table_ledger import OwnLoadState
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta
from kainite_spark.targets.contract import Unit

if TYPE_CHECKING:  # whose module needs PostgreSQL's driver
    from kainite.replicate.tables import TableName


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """What a load has made of a table.

    Attributes:
        place: its schema and name.
        point: the place of the source as of which it was copied; 0 where it is not known yet.
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
        reached: the latest place of the units, where a table that is not live waits to know it; else None.
    """

    units: Sequence[Unit]
    held: Sequence[HeldDeltas] = ()
    reached: int | None = None


@dataclass(slots=True)
class KnownTables:
    """The tables of a target's loads, as a session knows them.

    Attributes:
        catalogue: the target's tables.
    """

    catalogue: Catalogue
    _found: Mapping[str, LoadedTable] = field(default_factory=dict)
    _waits: bool = False  # whether a table is not live, also one that the catalogue does not have yet

    def know(self, found: Sequence[LoadedTable], default_schema: str) -> None:
        """Takes what was read.

        Args:
            found: the tables of loads.
            default_schema: where a table is that the catalogue names without a schema.
        """
        self._found = by_name(found, self.catalogue, default_schema)
        self._waits = not all(table.live for table in found)

    def what_is_new(self, units: Sequence[Unit]) -> NewUnits:
        """Returns the units without the deltas that came with a load, and without those that are held."""
        if not self._waits:
            latest = max((table.point for table in self._found.values()), default=0)
            return NewUnits([self._reduced(unit, latest) for unit in units] if latest else units)
        applied = [replace(unit, deltas=tuple(self._applied(unit))) for unit in units]
        held = [one for unit in units for one in self._held(unit)]
        reached = max((place for unit in units if (place := commit_place_of(unit.uow)) is not None), default=None)
        return NewUnits(applied, held, reached)

    def _reduced(self, unit: Unit, latest: int) -> Unit:
        place = commit_place_of(unit.uow)
        if place is None or place >= latest:
            return unit
        return replace(unit, deltas=tuple(self._applied(unit)))

    def _applied(self, unit: Unit) -> Iterator[Delta]:
        place = commit_place_of(unit.uow)
        for delta in unit.deltas:
            table = self._table(delta.table)
            if table is None or (table.live and (place is None or place >= table.point)):
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
