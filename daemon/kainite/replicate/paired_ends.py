"""Looks at both databases for the tables that can be compared, where MariaDB is one of them, or both are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar

from kainite.base.errors import SettingsError, SourceError
from kainite.capture.mysql.snapshot_tables import INNODB, SnapshotTable, key_ranges, of_other_engines, snapshot_tables
from kainite.capture.mysql.source_catalogue import MysqlSourceCatalogue
from kainite.replicate.binlog_ends import BinlogEnds
from kainite.replicate.binlog_plan import TablePair, paired_tables
from kainite.replicate.binlog_point import source_catalogue
from kainite.replicate.canonical_texts import text_kind
from kainite.replicate.ends import ReplicaEnds, is_mariadb, source_session, target_session
from kainite.replicate.mariadb_plan import mariadb_pairs
from kainite.replicate.mariadb_texts import TEXTS, kind_into_mariadb
from kainite.replicate.paired_rows import MariadbRows, PairedRows, PostgresRows, RowsSide, paired_rows
from kainite.replicate.plan import quoted
from kainite.replicate.tables import ReplicaTable, TableName, described, published
from kainite.targets.mariadb.rows import as_target_error
from kainite.uow.catalogue.tables import Catalogue

_MISSING: Final = "the target has no such table"
_NO_SNAPSHOT: Final = f"a table that is not InnoDB's has no snapshot: {INNODB}"

FoundSide: TypeAlias = RowsSide | str
"""A table of a side, or why it cannot be compared."""
PlacedSides: TypeAlias = Mapping[TableName, FoundSide]
"""Tables of a side by the target's schema and name."""


@dataclass(frozen=True, slots=True)
class ComparablePair:
    """What of both databases is compared.

    Attributes:
        tables: the tables.
        left_out: the tables that cannot be compared, with the reason.
    """

    tables: tuple[PairedRows, ...]
    left_out: dict[str, str]


def paired_tables_to_compare(
    ends: ReplicaEnds | BinlogEnds, catalogue: Catalogue, only: Sequence[str]
) -> ComparablePair:
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
    if isinstance(ends, BinlogEnds):
        sources, missing = _of_mariadb(ends, catalogue, only)
    else:
        sources, missing = _of_postgresql(ends, catalogue, only)
    targets = (_in_mariadb if is_mariadb(ends.target) else _in_postgresql)(ends.target, sources)
    found = {".".join(place): _paired(place, side, targets.get(place)) for place, side in sources.items()}
    tables = tuple(one for one in found.values() if isinstance(one, PairedRows))
    left_out = {name: one for name, one in found.items() if isinstance(one, str)}
    return ComparablePair(tables, left_out | {name: _MISSING for name in missing if not only})


def _of_mariadb(ends: BinlogEnds, catalogue: Catalogue, only: Sequence[str]) -> tuple[PlacedSides, Sequence[str]]:
    with source_catalogue(ends) as (source, database):
        others = of_other_engines(source, database, ends.source.tables)
        pairs, missing = paired_tables(snapshot_tables(source, database, ends.source.tables), catalogue)
        sides = {pair.place: _mariadb_rows(source, pair.source, others) for pair in _wanted(pairs, only)}
    return sides, missing


def _of_postgresql(ends: ReplicaEnds, catalogue: Catalogue, only: Sequence[str]) -> tuple[PlacedSides, Sequence[str]]:
    with source_session(ends.source.url) as source:
        pairs, missing = mariadb_pairs(published(source, ends.source.publication), catalogue)
    return {pair.place: PostgresRows(pair.source) for pair in _wanted(pairs, only)}, missing


N = TypeVar("N", SnapshotTable, ReplicaTable)


def _wanted(pairs: Sequence[TablePair[N]], only: Sequence[str]) -> Sequence[TablePair[N]]:
    if not pairs:
        raise SourceError("the source has no table that is read and that the target has")
    names = [(pair, {pair.source.name, pair.place[1], ".".join(pair.place)}) for pair in pairs]
    if unknown := sorted(name for name in only if not any(name in own for _, own in names)):
        raise SettingsError(f"no table {', '.join(unknown)} of the source is read, or the target has none of that name")
    return [pair for pair, own in names if not only or not own.isdisjoint(only)]


def _in_postgresql(url: str, places: Iterable[TableName]) -> PlacedSides:
    with target_session(url) as target:
        return {place: PostgresRows(table) for place, table in described(target, list(places)).items()}


def _in_mariadb(url: str, places: Iterable[TableName]) -> PlacedSides:
    by_schema: defaultdict[str, list[str]] = defaultdict(list)
    for schema, name in places:
        by_schema[schema].append(name)
    sides: dict[TableName, FoundSide] = {}
    with closing(MysqlSourceCatalogue(url, failing=as_target_error)) as target:
        for schema, names in by_schema.items():
            others = of_other_engines(target, schema, names)
            for table in snapshot_tables(target, schema, names):
                sides[schema, table.name] = _mariadb_rows(target, replace(table, schema=schema), others)
    return sides


def _mariadb_rows(catalogue: MysqlSourceCatalogue, table: SnapshotTable, others: Collection[str]) -> FoundSide:
    return _NO_SNAPSHOT if table.name in others else MariadbRows(table, tuple(key_ranges(catalogue, table)))


def _paired(place: TableName, source: FoundSide, target: FoundSide | None) -> PairedRows | str:
    if isinstance(source, str):
        return source
    if isinstance(target, str):
        return f"in the target: {target}"
    into_mariadb = isinstance(target, MariadbRows)
    if isinstance(source, PostgresRows) and into_mariadb and target is not None:
        source = replace(source, shown=_booleans(source.table, target.types))
    return paired_rows(".".join(place), source, target, kind_into_mariadb if into_mariadb else text_kind)


def _booleans(table: ReplicaTable, types: Mapping[str, str]) -> dict[str, str]:
    """Returns how columns of truth values are spelled, whose deltas have JSON's, so that MariaDB gets 1 and 0."""
    return {
        column.name: f"{quoted(column)}::{'text' if types.get(column.name) in TEXTS else 'int'}"
        for column in table.copied
        if column.type == "boolean"
    }
