"""Plans a load into MariaDB: which tables go where, and which ranges of rows are copied. Pure.

Foreign keys are not checked while rows are copied, so ranges have no order among each other; behind the last one comes
a step for each table that looks for rows without their parent (:mod:`kainite.replicate.mariadb_ledger`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from kainite.capture.mysql.snapshot_tables import SnapshotTable
from kainite.replicate.binlog_plan import PairedTable, TablePair, check_copyable, pairs_by_name
from kainite.replicate.ledger import CheckStep, CopyStep, LoadStep
from kainite.replicate.mariadb_ledger import CHECK_STAGE
from kainite.replicate.page_ranges import page_ranges, pages_of_a_range
from kainite.replicate.plan import quoted, range_query
from kainite.replicate.tables import ReplicaTable, TableName
from kainite.uow.catalogue.tables import Catalogue

# Types whose texts become other values in a delta (kainite.processors.postgresql_texts), by their OIDs.
_OIDS: Final[Mapping[str, int]] = {"boolean": 16, "bigint": 20, "smallint": 21, "integer": 23, "oid": 26}
_INTEGERS: Final = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")
_INTEGER_OID: Final = 20
_TEXT_OID: Final = 25


MariadbPair = TablePair[ReplicaTable]


def mariadb_pairs(tables: Iterable[ReplicaTable], target: Catalogue) -> tuple[list[MariadbPair], list[str]]:
    """Returns tables with those of the target, and the names of tables that the target lacks.

    A change names its table with the source's schema, and the target's catalogue is asked for that name.
    """
    return pairs_by_name(((table.full_name, table) for table in tables), target)


def check_mariadb_pairs(pairs: Sequence[MariadbPair], missing: Sequence[str]) -> None:
    """Raises CatalogueError where rows cannot be copied."""
    check_copyable(pairs, missing, "kainite replicate init tells what to do")


def steps_from_postgresql(pairs: Sequence[MariadbPair], parallelism: int) -> tuple[LoadStep, ...]:
    """Returns the steps that copy tables of PostgreSQL into MariaDB.

    Args:
        pairs: the tables.
        parallelism: how many tasks run at once.
    """
    pages = pages_of_a_range([pair.source for pair in pairs], parallelism)
    largest_first = sorted(pairs, key=lambda pair: -pair.source.bytes)
    return _with_checks((pair.place, copy) for pair in largest_first for copy in _from_postgresql(pair.source, pages))


def steps_from_mariadb(
    pairs: Sequence[PairedTable], ranges: Callable[[SnapshotTable], Iterable[str]]
) -> tuple[LoadStep, ...]:
    """Returns the steps that copy tables of MariaDB into MariaDB.

    Args:
        pairs: the tables.
        ranges: returns conditions that together have each row of a table once.
    """
    largest_first = sorted(pairs, key=lambda pair: -pair.source.bytes)
    return _with_checks(
        (pair.place, _from_mariadb(pair.source, condition))
        for pair in largest_first
        for condition in ranges(pair.source)
    )


def _with_checks(copies: Iterable[tuple[TableName, CopyStep]]) -> tuple[LoadStep, ...]:
    numbers = itertools.count(1)
    steps = [LoadStep(next(numbers), 1, *place, work) for place, work in copies]
    places = dict.fromkeys((step.schema, step.table) for step in steps)
    return (*steps, *(LoadStep(next(numbers), CHECK_STAGE, *place, CheckStep()) for place in places))


def _from_postgresql(table: ReplicaTable, pages: int) -> Iterator[CopyStep]:
    types = {column.name: _OIDS.get(column.type, _TEXT_OID) for column in table.copied}
    columns = ", ".join(map(quoted, table.copied))
    for part in table.parts:
        for one in page_ranges(part, pages):
            yield CopyStep((range_query(table, columns, one),), "", types=types)


def _from_mariadb(table: SnapshotTable, condition: str) -> CopyStep:
    spellings = tuple(column.form.spelling for column in table.copied)
    return CopyStep((table.query(condition),), "", spellings, mariadb_types(table))


def mariadb_types(table: SnapshotTable) -> dict[str, int]:
    """Returns the OIDs by which texts of a MariaDB source's columns become the values of a delta."""
    return {column.name: _INTEGER_OID if column.data_type in _INTEGERS else _TEXT_OID for column in table.copied}
