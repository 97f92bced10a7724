"""Plans units that empty tables, as a source's ``TRUNCATE`` does. Pure.

A unit's deltas are cut where it empties tables: what lies between is planned as a unit of its own. Deltas that empty
tables and follow one another are one ``TRUNCATE`` of several tables: children come before their parents, by precedence.
The source's order must be known, so each delta of the unit needs its ordinal.

The target deletes all rows, and does not truncate: in PostgreSQL a reader whose snapshot is older than a ``TRUNCATE``
finds the table empty, beside rows of other tables that are of before, which is no state that the source had.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from kainite.base.errors import TargetRejectedError
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import TRUNCATE, Delta
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.statements.planner import Planner, Statement, StatementShape


@dataclass(frozen=True, slots=True)
class EmptyingPlanner:
    """Implements :class:`~kainite_spark.targets.statements.planner.Planner` for units that empty tables, too.

    Attributes:
        planner: plans what lies between.
        catalogue: the target's tables.
        levels: precedence by table name.
    """

    planner: Planner
    catalogue: Catalogue
    levels: Mapping[str, int]

    def plan(self, units: Sequence[Unit], *, folded: bool = False, hooked: Collection[str] = ()) -> Iterator[Statement]:
        """Yields the statements that apply units, as :meth:`Planner.plan`; nothing is folded beside emptied tables."""
        if not any(map(_empties_any, units)):
            return self.planner.plan(units, folded=folded, hooked=hooked)
        return (
            statement for unit in units for part in _parts(unit)
            for statement in self._emptied(part) or self.planner.plan([part], hooked=hooked)
        )  # fmt: skip

    def one_by_one(self, unit: Unit) -> Iterator[Statement]:
        """Yields a statement for each delta, as :meth:`Planner.one_by_one`."""
        for part in _parts(unit):
            yield from self._emptied(part) or self.planner.one_by_one(part)

    def in_runs(self, unit: Unit) -> Iterator[Statement]:
        """Yields the statements of :meth:`Planner.in_runs`."""
        for part in _parts(unit):
            yield from self._emptied(part) or self.planner.in_runs(part)

    def has_runs(self, unit: Unit) -> bool:
        """Returns what :meth:`Planner.has_runs` does."""
        return any(not _empties_any(part) and self.planner.has_runs(part) for part in _parts(unit))

    def _emptied(self, part: Unit) -> list[Statement]:
        """Returns the statements of a part that empties tables; none for another part."""
        if not _empties_any(part):
            return []
        found = {self._table(delta): delta for delta in part.deltas}
        ordered = sorted(found, key=lambda name: -self.levels.get(name, 1))
        return [Statement(StatementShape(name, TRUNCATE, (), (), may_miss=True), (found[name],))
                for name in ordered]  # fmt: skip

    def _table(self, delta: Delta) -> str:
        table = self.catalogue.find(delta.table)
        if table is None:
            raise TargetRejectedError(f"the target has no table {delta.table}")
        return table.name


def _empties(delta: Delta) -> bool:
    return delta.op is TRUNCATE


def _empties_any(unit: Unit) -> bool:
    return TRUNCATE in [delta.op for delta in unit.deltas]


def _parts(unit: Unit) -> Iterable[Unit]:
    """Yields a unit in parts: each empties tables, or none.

    Raises:
        TargetRejectedError: the order of its deltas is not known.
    """
    if not _empties_any(unit):
        return (unit,)
    if any(delta.ordinal is None for delta in unit.deltas):
        raise TargetRejectedError("a unit that empties a table (truncate) needs 'ordinal' in each of its deltas")
    return [replace(unit, deltas=tuple(among)) for _, among in groupby(unit.deltas, _empties)]
