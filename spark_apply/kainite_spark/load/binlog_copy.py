"""MariaDB as the source of a load.

::

    offset of the extraction ─► binlog up to now ─► readers at one place of it ─► tables held ─► number at that place

The boundary between copy and stream is a transaction's *number*: the extractor numbers all that commit in the database
in the order of the binlog, so the copy has those up to some number, and the log brings those behind it. Nothing but
the binlog says which number a place has. So the load reads the binlog from the extraction's offset, whose number is
known, up to the place, with the extractor's own code. Most of the binlog is read before there is a snapshot, which
would wait for it.

A transaction stands in the binlog before InnoDB has committed it, and may be numbered then: for long, where its commit
waits for a semi-synchronous replica (``AFTER_SYNC``). So a snapshot whose place is before what was read is begun again.
For the load of a single table that has one more reason: a unit that was applied to it before its load began may be such
a transaction. The end of the binlog is read behind that beginning, so the copy has it.

A load is of worth only if the extraction gives all changes of its tables from the point on. Which tables an extraction
reads (``--table``), and since when, its offset says. The load of a single table waits for an extraction that reads it,
and only then makes the point. Where a gap is found later the copy is void, and the next start begins anew
(:mod:`kainite.replicate.binlog_table`).

InnoDB's own ``ON DELETE CASCADE`` and the like are not in the binlog: the target's foreign keys do the same. They are
off while a table is loaded by itself, so such a table is refused (:mod:`kainite.capture.mysql.silent_actions`).

What a crash leaves: readers that nobody needs, which end by themselves (:mod:`kainite_spark.load.snapshot_reader`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

from kainite.base.errors import SettingsError
from kainite.capture.mysql.heartbeat import TableHeartbeat
from kainite.capture.mysql.place import BinlogPlace
from kainite.capture.mysql.snapshot_tables import SnapshotTable, key_ranges, snapshot_tables
from kainite.capture.mysql.source import check_offset
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.capture.mysql.source_checks import WANTED, check_settings
from kainite.capture.places import mariadb_source
from kainite.capture.postgresql.consistent_snapshot import ConsistentPoint
from kainite.capture.postgresql.source_identity import SourceIdentity
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_plan import PairedTable, check_pairs, copy_steps, paired_tables
from kainite.replicate.binlog_point import binlog_point, offset_of, source_catalogue
from kainite.replicate.binlog_table import check_copied, check_point, check_read, paired_table, wait_until_read
from kainite.replicate.ends import is_mariadb, target_session
from kainite.replicate.ledger import LoadStep
from kainite.replicate.mariadb_plan import steps_from_mariadb
from kainite.replicate.tables import TableName
from kainite.targets.postgresql.pooling import OWN_PORT, share_sessions
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.load.snapshot_readers import begin_snapshot, hold_tables, release_snapshot, snapshot_lives


@dataclass(frozen=True, slots=True)
class _BinlogCopy:
    """Implements :class:`kainite_spark.load.copy_source.PlannedCopy`."""

    ends: BinlogEnds
    tables: Sequence[PairedTable]
    steps: Sequence[LoadStep]
    readers: int

    def point(self, generation: int) -> ConsistentPoint:
        def begin(least: BinlogPlace) -> _ReadSnapshot:
            return _ReadSnapshot(*begin_snapshot(self.ends, self.readers, least))

        snapshot, found = binlog_point(self.ends, [pair.source for pair in self.tables], begin)
        identity = SourceIdentity(mariadb_source(found.server), 0, found.database)
        return ConsistentPoint(found.number + 1, snapshot.name, identity)


@dataclass(frozen=True, slots=True)
class _ReadSnapshot:
    """Implements :class:`kainite.replicate.binlog_point.BegunSnapshots` with processes."""

    name: str
    place: BinlogPlace

    def hold(self, tables: Sequence[str]) -> None:
        hold_tables(self.name, tables)

    def release(self) -> None:
        release_snapshot(self.name)


@dataclass(frozen=True, slots=True)
class BinlogCopySource:
    """Implements :class:`kainite_spark.load.copy_source.CopySource` with MariaDB's binlog.

    Attributes:
        ends: source and target.
        table: the table of whose own load this is the source, as the target names it; None for all that are read.
    """

    ends: BinlogEnds
    table: TableName | None = None

    def check_sessions(self) -> None:
        if is_mariadb(self.ends.target):
            return
        with target_session(self.ends.target) as one, target_session(self.ends.target) as other:
            if share_sessions(one, other):
                raise SettingsError(
                    "the target's address leads through a pooler in transaction mode, where no session is Kainite's"
                    f" own: {OWN_PORT}"
                )

    def check(self) -> None:
        offset = offset_of(self.ends)
        with source_catalogue(self.ends) as (catalogue, _):
            check_settings(catalogue.variables(*WANTED))
        check_offset(self.ends.source.url, offset)
        if self.table is None:
            check_read(self.ends, self.ends.source.tables)

    def check_point(self, point: int) -> None:
        check_point(self.ends, self.ends.source.tables if self.table is None else self.table[1:], point)

    def plan(self, target: Catalogue, parallelism: int) -> _BinlogCopy:
        if self.table is not None:
            return self._plan_one(self.table, target, parallelism)
        with source_catalogue(self.ends) as (catalogue, database):
            check_copied(catalogue, database, self.ends.source.tables)
            pairs, missing = paired_tables(snapshot_tables(catalogue, database, self.ends.source.tables), target)
            check_pairs(pairs, missing)
            ranges = partial(_ranges, catalogue)
            into_mariadb = is_mariadb(self.ends.target)
            steps = steps_from_mariadb(pairs, ranges) if into_mariadb else copy_steps(pairs, target, ranges)
        return _BinlogCopy(self.ends, pairs, steps, parallelism)

    def _plan_one(self, table: TableName, target: Catalogue, parallelism: int) -> _BinlogCopy:
        """Returns what is to be copied of one table, which the extraction reads from now on."""
        pair = paired_table(self.ends, ".".join(table), target)
        wait_until_read(self.ends, pair.source.name)
        with source_catalogue(self.ends) as (catalogue, _):
            ranges = partial(_ranges, catalogue)
            into_mariadb = is_mariadb(self.ends.target)
            steps = steps_from_mariadb([pair], ranges) if into_mariadb else copy_steps([pair], Catalogue({}), ranges)
        return _BinlogCopy(self.ends, [pair], steps, min(parallelism, len(steps)))

    def lives(self, snapshot: str) -> bool:
        return snapshot_lives(snapshot)

    def release(self, snapshot: str) -> None:
        release_snapshot(snapshot)

    def of_table(self, table: TableName, load: str) -> BinlogCopySource:
        return replace(self, ends=replace(self.ends, log_partition=load), table=table)

    def nudge(self) -> None:
        with closing(TableHeartbeat(self.ends.source.url)) as heartbeat:
            heartbeat.write()


def _ranges(catalogue: MysqlSourceCatalogue, table: SnapshotTable) -> list[str]:
    return list(key_ranges(catalogue, table))
