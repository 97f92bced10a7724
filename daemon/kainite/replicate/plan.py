"""Plans a load: which ranges of rows are copied by which statement, and in which order. Pure.

Where foreign keys are made after the rows, the order is free. Where the target has them already, a parent's rows must
be committed before a child's are written: tables have stages by precedence. A table that references itself is one step,
since a foreign key is checked when the statement has ended. Tables in a cycle have no such order, and are refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from kainite.base.errors import CatalogueError
from kainite.replicate.ledger import CopyStep, LoadStep
from kainite.replicate.page_ranges import PageRange, page_ranges, pages_of_a_range
from kainite.replicate.tables import ReplicaColumn, ReplicaTable, TableName
from kainite.uow.catalogue.tables import Catalogue, Table
from kainite.uow.precedence.levels import Reference, TableGraph, cycles, levels


def load_steps(tables: Sequence[ReplicaTable], target: Catalogue, parallelism: int) -> tuple[LoadStep, ...]:
    """Returns the steps that copy tables.

    Args:
        tables: the source's tables.
        target: the target's tables, with the foreign keys that are there now.
        parallelism: how many tasks run at once.

    Raises:
        CatalogueError: foreign keys of the target form a cycle.
    """
    stages = stages_of(target)
    pages = pages_of_a_range(tables, parallelism)
    numbers = itertools.count(1)
    return tuple(
        LoadStep(next(numbers), stages.level(table.place), table.schema, table.name, work)
        for table in sorted(tables, key=lambda table: -table.bytes)
        for work in _copies(table, pages, whole=stages.refers_to_itself(table.place))
    )


class Stages:
    """The order of a target's tables in a load.

    Args:
        families: for each table the family that it belongs to: a partitioned table with its partitions is one.
        found: the level of each family.
        alone: families that reference themselves.
    """

    def __init__(self, families: Mapping[TableName, str], found: Mapping[str, int], alone: frozenset[str]) -> None:
        self._families = families
        self._levels = found
        self._alone = alone

    def level(self, name: TableName) -> int:
        """Returns the stage of a table, from 1."""
        return self._levels.get(self._families.get(name, ""), 1)

    def refers_to_itself(self, name: TableName) -> bool:
        """Tells whether a table's rows may name rows of the same table."""
        return self._families.get(name) in self._alone


def stages_of(target: Catalogue) -> Stages:
    """Returns the order of a target's tables.

    Raises:
        CatalogueError: foreign keys form a cycle.
    """
    graph = family_graph(target)
    if found := cycles(graph):
        groups = "; ".join(", ".join(group) for group in found)
        raise CatalogueError(
            f"foreign keys of the target form a cycle ({groups}), which has no order in which rows can be copied: DROP"
            " CONSTRAINT of one of them before the load, and ADD it after the load; or let kainite replicate init make"
            " the tables, which adds foreign keys after the rows"
        )
    families = {(table.schema or target.default_schema or "", table.bare_name): family(table)
                for table in target.tables.values()}  # fmt: skip
    alone = frozenset(edge.child for edge in graph.references if edge.child == edge.parent)
    return Stages(families, levels(graph), alone)


def family(table: Table) -> str:
    """Returns the name under which a table, its partitions and its whole stand in the graph of families."""
    return table.part_of or table.name


def family_graph(target: Catalogue) -> TableGraph:
    """Returns the foreign keys between families."""
    names = {name: family(table) for name, table in target.tables.items()}
    pairs = {
        (names.get(key.parent, key.parent), child)
        for table, child in zip(target.tables.values(), names.values(), strict=True)
        for key in table.foreign_keys
    }
    edges = tuple(Reference(parent, child) for parent, child in sorted(pairs))
    known = {*names.values(), *(edge.parent for edge in edges)}
    return TableGraph(tuple(sorted(known)), edges)


def _copies(table: ReplicaTable, pages: int, *, whole: bool) -> Iterator[CopyStep]:
    """Yields what copies a table, range by range, or as a whole."""
    columns = ", ".join(map(quoted, table.copied))
    into = f"COPY {table.sql} ({columns}) FROM STDIN"
    queries = [range_query(table, columns, one) for part in table.parts for one in page_ranges(part, pages)]
    if whole:
        yield CopyStep(tuple(queries), into)
    else:
        yield from (CopyStep((query,), into) for query in queries)


def range_query(table: ReplicaTable, columns: str, one: PageRange) -> str:
    """Returns the statement that reads a range of a table's rows.

    Args:
        table: the table.
        columns: the names of what is read, as SQL.
        one: the range.
    """
    wanted = f" AND ({table.published_rows})" if table.published_rows else ""
    return f"COPY (SELECT {columns} FROM ONLY {one.part} WHERE {one.condition}{wanted}) TO STDOUT"


def quoted(column: ReplicaColumn) -> str:
    """Returns a column's name as SQL."""
    return '"' + column.name.replace('"', '""') + '"'
