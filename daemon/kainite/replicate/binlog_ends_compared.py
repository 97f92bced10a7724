"""Looks at a MariaDB source and its target for the tables that can be compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kainite.base.errors import SettingsError, SourceError
from kainite.capture.mysql.snapshot_tables import INNODB, SnapshotTable, key_ranges, of_other_engines, snapshot_tables
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.replicate.binlog_compared import KeyRange, PairedRows, paired_rows
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_plan import PairedTable, paired_tables
from kainite.replicate.binlog_point import source_catalogue
from kainite.replicate.ends import target_session
from kainite.replicate.tables import ReplicaTable, TableName, described
from kainite.uow.catalogue.tables import Catalogue

_MISSING: Final = "the target has no such table"


@dataclass(frozen=True, slots=True)
class ComparablePair:
    """What of both databases is compared.

    Attributes:
        tables: the tables.
        ranges: those of each table's rows in the source, by the table's name.
        left_out: the tables that cannot be compared, with the reason.
    """

    tables: tuple[PairedRows, ...]
    ranges: Mapping[str, tuple[KeyRange, ...]]
    left_out: dict[str, str]


def binlog_tables_to_compare(ends: BinlogEnds, catalogue: Catalogue, only: Sequence[str]) -> ComparablePair:
    """Returns the tables that can be compared, and why others cannot.

    Args:
        ends: both databases.
        catalogue: the target's tables.
        only: tables, by the source's name or the target's, with a schema or without; empty: all that are read.

    Raises:
        SettingsError: ``only`` names a table that is not read.
        SourceError: the source does not answer, or nothing of it is read.
        TargetUnavailableError: the target does not answer.
    """
    with source_catalogue(ends) as (source, database), target_session(ends.target) as target:
        others = of_other_engines(source, database, ends.source.tables)
        pairs, missing = paired_tables(snapshot_tables(source, database, ends.source.tables), catalogue)
        if not pairs:
            raise SourceError("the source has no table that is read and that the target has")
        chosen = _wanted(pairs, only)
        theirs = described(target, [pair.place for pair in chosen])
        found = {_name(pair): _paired(pair, others, theirs) for pair in chosen}
        tables = tuple(one for one in found.values() if isinstance(one, PairedRows))
        ranges = {table.name: tuple(_ranges(source, table.source)) for table in tables}
    left_out = {name: one for name, one in found.items() if isinstance(one, str)}
    return ComparablePair(tables, ranges, left_out | {name: _MISSING for name in missing if not only})


def _wanted(pairs: Sequence[PairedTable], only: Sequence[str]) -> Sequence[PairedTable]:
    names = [(pair, {pair.source.name, pair.place[1], _name(pair)}) for pair in pairs]
    if unknown := sorted(name for name in only if not any(name in own for _, own in names)):
        raise SettingsError(f"no table {', '.join(unknown)} of the source is read, or the target has none of that name")
    return [pair for pair, own in names if not only or not own.isdisjoint(only)]


def _paired(pair: PairedTable, others: Collection[str], theirs: Mapping[TableName, ReplicaTable]) -> PairedRows | str:
    if pair.source.name in others:
        return f"a table that is not InnoDB's has no snapshot: {INNODB}"
    return paired_rows(_name(pair), pair.source, theirs.get(pair.place))


def _ranges(source: MysqlSourceCatalogue, table: SnapshotTable) -> Iterator[KeyRange]:
    return (KeyRange(table.name, condition) for condition in key_ranges(source, table))


def _name(pair: PairedTable) -> str:
    return ".".join(pair.place)
