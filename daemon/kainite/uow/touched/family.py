"""Folds partitions, and tables that inherit, into their outermost table.

A row of a partition is a row of the partitioned table too, and deltas may call it by either name. So all
tables of a family get one set of keys, under the outermost table's name: every primary key, unique key and
foreign key that some table of the family has. A key that only one partition has is thereby compared across all of
them, which costs parallelism, never correctness. A foreign key to a partition is one to the outermost table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kainite.uow.catalogue.tables import Catalogue, Column, ForeignKey, Table, UniqueKey


@dataclass(frozen=True, slots=True)
class Family:
    """Tables that may hold the same rows.

    Attributes:
        name: the outermost table's name.
        columns: the columns of all tables, by name.
        filled: the columns that may have a value where an insert does not name them.
        primary_keys: the primary keys, each set of columns once.
        unique_keys: the unique keys, each set of columns once.
        foreign_keys: the foreign keys with their parents' families, each once.
        several: whether it has several tables, of which each may have a row with the same primary key.
    """

    name: str
    columns: Mapping[str, Column]
    filled: frozenset[str]
    primary_keys: tuple[tuple[str, ...], ...]
    unique_keys: tuple[UniqueKey, ...]
    foreign_keys: tuple[ForeignKey, ...]
    several: bool = False

    @property
    def computed(self) -> frozenset[str]:
        """Returns the generated columns, which change without being told."""
        return frozenset(name for name, column in self.columns.items() if column.generated)


def families(catalogue: Catalogue) -> Mapping[str, Family]:
    """Returns the family of each table of the catalogue, by the table's name."""
    members: defaultdict[str, list[Table]] = defaultdict(list)
    for table in catalogue.tables.values():
        members[table.part_of or table.name].append(table)
    folded = {name: _family(name, tables, catalogue) for name, tables in members.items()}
    return {table.name: folded[table.part_of or table.name] for table in catalogue.tables.values()}


def _family(name: str, tables: list[Table], catalogue: Catalogue) -> Family:
    # The outermost table's spelling of a key comes first, whatever the order of the tables.
    tables = sorted(tables, key=lambda table: (table.name != name, table.name))
    columns = {column: each for table in reversed(tables) for column, each in table.columns.items()}
    keys = {frozenset(table.primary_key): table.primary_key for table in reversed(tables) if table.primary_key}
    unique_keys = {_excludes(key): key for table in reversed(tables) for key in table.unique_keys}
    foreign_keys = [_folded(key, catalogue) for table in reversed(tables) for key in table.foreign_keys]
    return Family(
        name,
        columns,
        _filled(tables),
        tuple(keys.values()),
        tables[0].unique_keys if len(tables) == 1 else tuple(unique_keys.values()),
        tuple({_reference(key): key for key in foreign_keys}.values()),
        len(tables) > 1,
    )


def _filled(tables: Iterable[Table]) -> frozenset[str]:
    return frozenset(
        name
        for table in tables
        for name, column in table.columns.items()
        if column.generated or table.defaults is None or name in table.defaults
    )


def _excludes(key: UniqueKey) -> tuple[object, ...]:
    """Returns what tells unique keys apart: their columns, not their names; the name of a key without columns."""
    return (key.columns and frozenset(key.columns)) or key.name, key.nulls_distinct


def _folded(key: ForeignKey, catalogue: Catalogue) -> ForeignKey:
    parent = catalogue.tables.get(key.parent)
    return key if parent is None or parent.part_of is None else replace(key, parent=parent.part_of)


def _reference(key: ForeignKey) -> tuple[object, ...]:
    """Returns a foreign key without its name, so that foreign keys that differ in their names alone are equal."""
    pairs = frozenset(zip(key.columns, key.parent_columns, strict=True))
    return key.parent, pairs, key.on_delete, key.on_update
