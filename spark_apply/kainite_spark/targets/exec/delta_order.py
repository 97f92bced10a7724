"""The order in which a unit's deltas are told to a loader. Pure.

With a catalogue it is the order of a database target (:mod:`kainite_spark.targets.statements.planner`): inserts and
upserts by ascending precedence, then updates, then deletes by descending precedence, step by step where
a row is touched more than once. Tables and columns that the catalogue does not have are refused
before the loader hears of them.

Without one, precedence comes from the file of pairs alone, and a row is known by the ``key`` of its
deltas. A unit whose deltas do not tell their rows apart (a table with two kinds of key, or with none
beside one) stays in the source's order; so does every unit where there is no precedence either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kainite.uow.catalogue.tables import Catalogue, Column, Table, TypeFamily
from kainite.uow.delta import Delta
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.statements.planner import Planner, Statement


@dataclass(frozen=True, slots=True)
class DeltaOrder:
    """What is known of the tables that a loader writes.

    Attributes:
        catalogue: its tables; None where there is no catalogue file.
        levels: precedence by table name; empty when nothing is known of it.
    """

    catalogue: Catalogue | None
    levels: Mapping[str, int]

    def by_precedence(self, unit: Unit) -> Sequence[Delta]:
        """The deltas, parents first; raises TargetRejectedError as :meth:`Planner.plan`."""
        catalogue = self.catalogue or (_by_key(unit.deltas) if self.levels else None)
        if catalogue is None:
            return unit.deltas
        return _deltas(Planner(catalogue, self.levels).plan([unit]))

    def by_source(self, unit: Unit) -> Sequence[Delta]:
        """The deltas in the source's order; raises TargetRejectedError as :meth:`Planner.one_by_one`."""
        if self.catalogue is None:
            return unit.deltas
        return [
            delta for statement in Planner(self.catalogue, self.levels).one_by_one(unit) for delta in statement.deltas
        ]


def _deltas(statements: Iterable[Statement]) -> list[Delta]:
    return [delta for statement in statements for delta in statement.deltas]


def _by_key(deltas: Sequence[Delta]) -> Catalogue | None:
    """As much of a catalogue as deltas tell; None when rows cannot be told apart by it."""
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
