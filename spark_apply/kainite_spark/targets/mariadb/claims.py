"""By what right a transaction writes rows: it locks what gives the right before it writes anything, and then keeps it.

Without the right it rolls back, and raises the claim's error. So a task or driver that was shut out changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pymysql

from kainite.base.errors import TargetError, TargetFencedError
from kainite.replicate import mariadb_table_ledger
from kainite.targets.mariadb.rows import rows_of
from kainite_spark.targets.contract import Unit
from kainite_spark.targets.fence import Fence, already_applied, fence_lost
from kainite_spark.targets.held_deltas import NewUnits
from kainite_spark.targets.mariadb import ledger
from kainite_spark.targets.mariadb.fence_row import execute
from kainite_spark.targets.mariadb.literals import quoted_text
from kainite_spark.targets.mariadb.loaded_positions import LoadedPositions, own_statements


class MariadbClaim(Protocol):
    """The right to write."""

    @property
    def repeated(self) -> TargetError:
        """Returns what is raised if another task has acknowledged a unit meanwhile."""

    def take(self, connection: pymysql.connections.Connection) -> Sequence[Unit]:
        """Locks what gives the right, in the transaction; returns the units with the deltas that are to be applied.

        Raises:
            TargetFencedError: somebody else has the right now.
            pymysql.Error: the server refused, or is away.
        """

    def before(self) -> Iterable[str]:
        """Returns what is executed before the units' statements, in Kainite's own tables."""

    def behind(self) -> Iterable[str]:
        """Returns what is executed behind them, in Kainite's own tables."""


@dataclass(slots=True)
class UnitsClaim:
    """The claim of the apply job: it acknowledges the units.

    Attributes:
        fence: the apply job and micro-batch that write.
        units: the units.
        loaded: what the session knows of loads.
        gid: under which the transaction is going to be prepared; None where it is committed.
    """

    fence: Fence
    units: Sequence[Unit]
    loaded: LoadedPositions
    gid: str | None = None
    _new: NewUnits = field(default=NewUnits(()), init=False)

    @property
    def repeated(self) -> TargetError:
        return already_applied(self.fence)

    def take(self, connection: pymysql.connections.Connection) -> Sequence[Unit]:
        fence = self.fence
        rows = rows_of(connection, ledger.SHARE_FENCE, fence.log_partition)
        if not rows or rows[0][:2] != (fence.generation, fence.micro_batch):
            raise fence_lost(fence)
        self._new = self.loaded.what_is_new(connection, fence, rows[0][2], self.units)
        return self._new.units

    def before(self) -> Iterator[str]:
        partition = quoted_text(self.fence.log_partition)
        yield ledger.ACKNOWLEDGE + ", ".join(
            f"({partition}, {unit.tid}, {quoted_text(unit.uow)})" for unit in self.units
        )
        if self.gid is not None:  # the transaction holds the fence as long as it is prepared
            yield f"{ledger.HOLD}({partition}, {quoted_text(self.gid)})"

    def behind(self) -> Iterable[str]:
        return own_statements(self._new, self.fence.log_partition)


@dataclass(frozen=True, slots=True)
class HeldClaim:
    """The claim of a table's load: it takes deltas that are held.

    Attributes:
        load: the name of the table's load.
        generation: the load's generation.
        places: the places of what was held.
        units: those of its units that are to be applied.
    """

    load: str
    generation: int
    places: Sequence[int]
    units: Sequence[Unit]

    @property
    def repeated(self) -> TargetError:
        return TargetFencedError(
            f"generation {self.generation} of {self.load} may not write any more: it was begun, or gone on with,"
            " elsewhere"
        )

    def take(self, connection: pymysql.connections.Connection) -> Sequence[Unit]:
        if not rows_of(connection, mariadb_table_ledger.HOLD_LOAD, self.load, self.generation):
            raise self.repeated
        if execute(connection, mariadb_table_ledger.TAKE_HELD, tuple(self.places)) != len(self.places):
            raise self.repeated
        return self.units

    def before(self) -> Iterable[str]:
        return ()

    def behind(self) -> Iterable[str]:
        return ()
