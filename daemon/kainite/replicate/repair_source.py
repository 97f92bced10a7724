"""What a repair needs of its source, whatever kind of database that is; and PostgreSQL and MariaDB as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kainite.capture.places import repair_name
from kainite.capture.postgresql.consistent_snapshot import LOCK_WAIT_S
from kainite.capture.postgresql.replication_frames import format_lsn
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_points import BinlogPoints
from kainite.replicate.binlog_repaired_rows import read_binlog_deltas
from kainite.replicate.compared_tables import ComparedTable
from kainite.replicate.ends import ReplicaEnds
from kainite.replicate.paired_rows import MariadbRows, PairedRows
from kainite.replicate.point_source import PostgresPoints
from kainite.replicate.repaired_rows import read_deltas
from kainite.replicate.verify_report import RowReport
from kainite.uow.delta import Delta


class RepairSource(Protocol):
    """A source whose rows a repair reads."""

    def read(self, rows: Sequence[RowReport]) -> tuple[int, tuple[Delta, ...]]:
        """Returns a new point, and the deltas that set rows to what the source has there.

        A heartbeat follows behind the point, so that there is a unit behind it.

        Raises:
            SourceError: the source refused, does not answer, or a transaction is in the way of the point.
            LogRequestError: a row cannot be told from others.
        """

    def unit(self, run: str, place: int) -> str:
        """Returns the name of a repair's unit, from which its point is read."""

    def shown(self, place: int) -> str:
        """Returns a point as people read it."""


@dataclass(frozen=True, slots=True)
class PostgresRepairs:
    """Implements :class:`RepairSource` with an exported snapshot.

    Attributes:
        ends: source and target.
        tables: the tables that are compared, by name.
        pairs: the same tables where the target is MariaDB; else none.
        lock_wait: seconds to wait for open transactions.
    """

    ends: ReplicaEnds
    tables: Mapping[str, ComparedTable]
    pairs: Mapping[str, PairedRows] = field(default_factory=dict)
    lock_wait: float = LOCK_WAIT_S

    def read(self, rows: Sequence[RowReport]) -> tuple[int, tuple[Delta, ...]]:
        oids = [part.oid for name in {row.table for row in rows} for part in self.tables[name].source.parts]
        points = PostgresPoints(self.ends, oids, self.lock_wait)
        with points.snapshot() as point:
            deltas = read_deltas(self.ends.source.url, point.snapshot, self.tables, rows, self.pairs or None)
        points.beat()
        return point.place, deltas

    def unit(self, run: str, place: int) -> str:
        return f"{run}-{format_lsn(place)}"

    def shown(self, place: int) -> str:
        return format_lsn(place)


@dataclass(frozen=True, slots=True)
class BinlogRepairs:
    """Implements :class:`RepairSource` with a session whose snapshot has a place in the binlog.

    Attributes:
        ends: source and target.
        tables: the tables that are compared, by name.
    """

    ends: BinlogEnds
    tables: Mapping[str, PairedRows]

    def read(self, rows: Sequence[RowReport]) -> tuple[int, tuple[Delta, ...]]:
        sides = [self.tables[name].source for name in {row.table for row in rows}]
        points = BinlogPoints(self.ends, [side.table for side in sides if isinstance(side, MariadbRows)], 1)
        with points.snapshot() as point:
            deltas = read_binlog_deltas(points.sessions[0], self.tables, rows)
        points.beat()
        return point.place, deltas

    def unit(self, run: str, place: int) -> str:
        return repair_name(run, place)

    def shown(self, place: int) -> str:
        return f"transaction {place - 1}"
