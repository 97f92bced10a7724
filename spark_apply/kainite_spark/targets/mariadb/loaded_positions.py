"""Leaves out of units what a load has brought, and holds the deltas of tables that are being loaded by themselves.

:mod:`kainite_spark.targets.held_deltas` says which ones. It lets no apply job in before the load is live.

A session reads the tables' positions and states once for each generation of the apply job and *version* of the states,
in a transaction that holds the fence, which has both: a load of everything closes the fence, and the load of a single
table raises the version, and either waits for the transactions that have read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pymysql

from kainite.base.errors import TargetUnavailableError
from kainite.log.format.deltas import dump_deltas
from kainite.replicate import mariadb_ledger, mariadb_table_ledger
from kainite.replicate.ledger import HANDED_OVER, LoadState
from kainite.replicate.table_ledger import OwnLoadState
from kainite.targets.mariadb.rows import rows_if_there, rows_of
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence
from kainite_spark.targets.held_deltas import HeldDeltas, KnownTables, LoadedTable, NewUnits
from kainite_spark.targets.mariadb.literals import quoted_text
from kainite_spark.targets.mariadb.rendering import MOST_CHARACTERS

if TYPE_CHECKING:  # whose module needs PostgreSQL's driver
    from kainite.replicate.tables import TableName


@dataclass(slots=True)
class LoadedPositions:
    """What a session knows of a target's loads.

    Attributes:
        catalogue: the target's tables.
    """

    catalogue: Catalogue
    _read_for: tuple[str, int, int] | None = None
    _known: KnownTables = field(init=False)

    def __post_init__(self) -> None:
        self._known = KnownTables(self.catalogue)

    def what_is_new(
        self, connection: pymysql.connections.Connection, fence: Fence, version: int, units: Sequence[Unit]
    ) -> NewUnits:
        """Returns units without what a load has brought, and what of them is held.

        Args:
            connection: in a transaction that holds the fence.
            fence: the fence.
            version: the version of the tables' states that was read with it.
            units: the units.
        """
        read_for = fence.log_partition, fence.generation, version
        if self._read_for != read_for:
            rows = rows_if_there(connection, mariadb_table_ledger.STATES, fence.log_partition)
            found = [
                LoadedTable((schema, name), int(point), OwnLoadState(state)) for schema, name, point, state in rows
            ]
            self._known.know(found, self.catalogue.default_schema or _database(connection))
            self._read_for = read_for
        return self._known.what_is_new(units)


def own_statements(new: NewUnits, log_partition: str) -> Iterator[str]:
    """Yields what is executed behind the units' own statements, in their transaction.

    What was reached comes last: other tasks wait for the row that it is noted in.
    """
    yield from _holding(log_partition, new.held)
    if new.reached is not None:
        yield mariadb_table_ledger.REACHED.format(reached=new.reached, log=quoted_text(log_partition))


def _holding(log_partition: str, held: Sequence[HeldDeltas]) -> Iterator[str]:
    """Yields the statements that hold deltas, in pieces."""
    log = quoted_text(log_partition)
    rows: list[str] = []
    size = 0
    for one in held:
        data = dump_deltas(one.deltas)
        step = mariadb_table_ledger.HELD_PIECE
        for first in range(0, len(data), step):
            piece, last = data[first : first + step], first + step >= len(data)
            of = ", ".join([log, *map(quoted_text, one.place), str(one.tid), quoted_text(one.uow)])
            rows.append(f"({of}, {last:d}, {len(piece)}, X'{piece.hex()}')")
            size += len(rows[-1])
            if size >= MOST_CHARACTERS:
                yield mariadb_table_ledger.HOLD + ", ".join(rows)
                rows, size = [], 0
    if rows:
        yield mariadb_table_ledger.HOLD + ", ".join(rows)


def _database(connection: pymysql.connections.Connection) -> str:
    """Returns the database in which the session's own statements find a name without one.

    A catalogue's file may leave it out. A table that were not found then would be written although it is being loaded.
    """
    return str(rows_of(connection, "SELECT DATABASE()")[0][0])


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
