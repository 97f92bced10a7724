"""Leaves out of units what a load has brought, and lets no apply job in before the load is live.

:mod:`kainite.replicate.mariadb_ledger` says why nothing is lost or doubled by this. A unit of which nothing is left is
acknowledged as any other, so that its number leaves no gap.

A session reads the tables' positions once for a generation of the apply job, in a transaction that holds the fence: a
load that begins closes the fence, and the job is let in again under another generation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pymysql

from kainite.base.errors import TargetUnavailableError
from kainite.capture.places import commit_place_of
from kainite.replicate import mariadb_ledger
from kainite.replicate.ledger import HANDED_OVER, LoadState
from kainite.replicate.tables import TableName
from kainite.targets.mariadb.rows import rows_if_there
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.delta import Delta
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence


@dataclass(slots=True)
class LoadedPositions:
    """What a session knows of a target's load.

    Attributes:
        catalogue: the target's tables.
    """

    catalogue: Catalogue
    _read_for: tuple[str, int] | None = None
    _points: Mapping[tuple[str, str], int] = field(default_factory=dict)
    _latest: int = 0

    def without_loaded(
        self, connection: pymysql.connections.Connection, fence: Fence, units: Sequence[Unit]
    ) -> Sequence[Unit]:
        """Returns units without the deltas that came with the load; in a transaction that holds the fence."""
        if self._read_for != (fence.log_partition, fence.generation):
            rows = rows_if_there(connection, mariadb_ledger.POSITIONS, fence.log_partition)
            self._points = {(schema, name): int(point) for schema, name, point in rows}
            self._latest = max(self._points.values(), default=0)
            self._read_for = fence.log_partition, fence.generation
        return [self._reduced(unit) for unit in units] if self._latest else units

    def _reduced(self, unit: Unit) -> Unit:
        place = commit_place_of(unit.uow)
        if place is None or place >= self._latest:
            return unit
        return replace(unit, deltas=tuple(self._applied(unit.deltas, place)))

    def _applied(self, deltas: Sequence[Delta], place: int) -> Iterator[Delta]:
        for delta in deltas:
            table = self.catalogue.find(delta.table)
            found = None if table is None else (table.schema or self.catalogue.default_schema or "", table.bare_name)
            if found is None or place >= self._points.get(found, 0):
                yield delta


def refuse_while_loading(connection: pymysql.connections.Connection, log_partition: str) -> None:
    """Lets no apply job in before the load is live; in the transaction that has locked the fence's row.

    Raises:
        TargetUnavailableError: the target is being loaded, or was cut over.
    """
    found = rows_if_there(connection, mariadb_ledger.STATE, log_partition)
    if found and found[0][0] == LoadState.CUT_OVER:
        raise TargetUnavailableError(HANDED_OVER)
    if found and found[0][0] != LoadState.LIVE:
        raise TargetUnavailableError(
            f"the target's tables are {found[0][0]}, and not live: units are applied when kainite replicate load has"
            " ended (kainite replicate status)"
        )


def is_cut_over(connection: pymysql.connections.Connection, log_partition: str) -> bool:
    """Tells whether a log's replica was cut over: others write in it, and need its triggers."""
    found = rows_if_there(connection, mariadb_ledger.STATE, log_partition)
    return bool(found) and found[0][0] == LoadState.CUT_OVER


def handed_over(connection: pymysql.connections.Connection) -> frozenset[TableName]:
    """Returns the tables that cut-overs have handed over, of whichever log."""
    return frozenset((schema, name) for schema, name in rows_if_there(connection, mariadb_ledger.HANDED_OVER))
