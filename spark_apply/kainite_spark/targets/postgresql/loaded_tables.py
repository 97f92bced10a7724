"""Leaves out of units what a load has brought: the deltas of a table whose unit committed before the table's point.

:mod:`kainite.replicate.ledger` says why nothing is lost or doubled by this. A unit of which nothing is left is
acknowledged as any other, so that its number leaves no gap.

A session reads the points once for each generation of the apply job. They cannot change while the generation writes: a
load closes the fence of the generation first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import psycopg

from kainite.base.errors import TargetUnavailableError
from kainite.capture.postgresql.transactions import commit_lsn_of
from kainite.replicate import ledger
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence


@dataclass(slots=True)
class LoadedTables:
    """What a session knows of a target's load.

    Attributes:
        catalogue: the target's tables.
    """

    catalogue: Catalogue
    _read_for: tuple[str, int] | None = None
    _points: Mapping[str, int] = field(default_factory=dict)

    def is_known(self, fence: Fence) -> bool:
        """Tells whether the points are those of the fence's generation."""
        return self._read_for == (fence.log_partition, fence.generation)

    def read(self, connection: psycopg.Connection, fence: Fence) -> None:
        """Reads the points of a log's load, if there is one."""
        self._points = points(connection, fence.log_partition, self.catalogue)
        self._read_for = fence.log_partition, fence.generation

    def what_is_new(self, units: Sequence[Unit]) -> Sequence[Unit]:
        """Returns the units without the deltas that came with the load."""
        latest = max(self._points.values(), default=0)
        return [self._reduced(unit, latest) for unit in units] if latest else units

    def _reduced(self, unit: Unit, latest: int) -> Unit:
        lsn = commit_lsn_of(unit.uow)
        if lsn is None or lsn >= latest:
            return unit
        return replace(unit, deltas=tuple(delta for delta in unit.deltas if lsn >= self._point(delta.table)))

    def _point(self, name: str) -> int:
        """Returns the point of a table, which deltas may call with the default schema or without; 0 for others."""
        table = self.catalogue.find(name)
        return 0 if table is None else self._points.get(table.name, 0)


def points(connection: psycopg.Connection, log_partition: str, catalogue: Catalogue) -> Mapping[str, int]:
    """Returns the LSN as of which each table was loaded, by the table's name in the catalogue; empty without a load."""
    if not _is_there(connection):
        return {}
    found = {
        (schema, name): lsn for schema, name, lsn in connection.execute(ledger.POSITIONS, (log_partition,)).fetchall()
    }
    names = {
        name: (table.schema or catalogue.default_schema or "", table.bare_name)
        for name, table in catalogue.tables.items()
    }
    return {name: found[place] for name, place in names.items() if place in found}


def refuse_while_loading(connection: psycopg.Connection, log_partition: str) -> None:
    """Lets no apply job in before the load is live; in the transaction that has locked the fence's row.

    Raises:
        TargetUnavailableError: the target is being loaded, or was cut over.
    """
    if not _is_there(connection):
        return
    row = connection.execute(ledger.NOT_LIVE, (log_partition,)).fetchone()
    if row is not None and row[0] == ledger.LoadState.CUT_OVER:
        raise TargetUnavailableError(
            "the target was cut over (kainite replicate cutover): others write in it, and no unit is applied any more"
        )
    if row is not None:
        raise TargetUnavailableError(
            f"the target's tables are {row[0]}, and not live: units are applied when kainite replicate load has ended"
            " (kainite replicate status)"
        )


def is_cut_over(connection: psycopg.Connection) -> bool:
    """Tells whether the target was cut over, for whichever log: others write in it, and need its triggers."""
    if not _is_there(connection):
        return False
    row = connection.execute(ledger.IS_CUT_OVER).fetchone()
    return row is not None and bool(row[0])


def _is_there(connection: psycopg.Connection) -> bool:
    row = connection.execute(ledger.IS_THERE).fetchone()
    return row is not None and bool(row[0])
