"""The order in which a loader gets a unit's deltas. Pure.

With a catalogue, the order is that of a database target (:mod:`kainite_spark.targets.statements.planner`): inserts
and upserts by ascending precedence, then updates, then deletes by descending precedence, in several steps if
a row is touched more than once. A unit with a table or column that is not in the catalogue is refused
before the loader gets it.

Without a catalogue, precedence comes from the file of pairs, and the ``key`` of a delta identifies its row.
A unit whose deltas do not identify their rows (a table with two kinds of key, or with a key in some deltas
alone) stays in the source's order. Where no precedence is known, every unit stays in the source's order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kainite.uow.catalogue.tables import Catalogue, Column, Table, TypeFamily
from kainite.uow.delta import Delta
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.statements.planner import Planner, Statement, refuse_emptying


@dataclass(frozen=True, slots=True)
class DeltaOrder:
    """The known tables of a loader, and the order of deltas that follows from them.

    Attributes:
        catalogue: the tables; None without a catalogue file.
        levels: precedence by table name; empty if unknown.
    """

    catalogue: Catalogue | None
    levels: Mapping[str, int]

    def by_precedence(self, unit: Unit) -> Sequence[Delta]:
        """Returns the deltas, parents first; raises TargetRejectedError as :meth:`Planner.plan`."""
        refuse_emptying(unit.deltas)
        catalogue = self.catalogue or (_by_key(unit.deltas) if self.levels else None)
        if catalogue is None:
            return unit.deltas
        return _deltas(Planner(catalogue, self.levels).plan([unit]))

    def by_source(self, unit: Unit) -> Sequence[Delta]:
        """Returns the deltas in the source's order; raises TargetRejectedError as :meth:`Planner.one_by_one`."""
        refuse_emptying(unit.deltas)
        if self.catalogue is None:
            return unit.deltas
        return [
            delta for statement in Planner(self.catalogue, self.levels).one_by_one(unit) for delta in statement.deltas
        ]


def _deltas(statements: Iterable[Statement]) -> list[Delta]:
    return [delta for statement in statements for delta in statement.deltas]


def _by_key(deltas: Sequence[Delta]) -> Catalogue | None:
    """Returns a catalogue as far as deltas show it; None if they do not identify their rows."""
    keys: dict[str, frozenset[str]] = {}
    columns: dict[str, set[str]] = {}
    for delta in deltas:
        if keys.setdefault(delta.table, frozenset(delta.key)) != delta.key.keys():
            return None
        columns.setdefault(delta.table, set()).update(delta.key, delta.row)
    return Catalogue({name: _table(name, key, columns[name]) for name, key in keys.items()})


def _table(name: str, key: frozenset[str], columns: set[str]) -> Table:
    described = {column: Column(column, "", TypeFamily.OPAQUE) for column in columns}
    return Table(name, None, described, tuple(sorted(key)))
