"""The contract of a reader of a database's catalogue: the facts that each kind of database gives of its tables.

One suite of tests holds for all readers: a catalogue that is read from a schema with everything in it
(``tests/kainite/targets/golden``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from kainite.uow.catalogue.tables import Column, ReferentialAction, UniqueKey


@dataclass(frozen=True, slots=True)
class FoundForeignKey:
    """A foreign key as the database has it: its parent has the database's name, not yet the deltas'."""

    name: str
    columns: tuple[str, ...]
    parent_schema: str | None
    parent: str
    parent_columns: tuple[str, ...]
    deferrable: bool
    on_delete: ReferentialAction = ReferentialAction.NO_ACTION
    on_update: ReferentialAction = ReferentialAction.NO_ACTION


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table as the database has it.

    Attributes:
        schema: None where tables have no schema.
        name: without the schema.
        columns: in the table's order.
        primary_key: in the key's order; empty without one.
        unique_keys: the unique constraints and indexes, without the primary key.
        foreign_keys: their names are spelled as in the parent tables.
        part_of: schema and name of the outermost table, for a partition or an heir.
        judged: see :attr:`kainite.uow.catalogue.tables.Table.judged`.
        defaults: see :attr:`kainite.uow.catalogue.tables.Table.defaults`.
    """

    schema: str | None
    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    unique_keys: tuple[UniqueKey, ...]
    foreign_keys: tuple[FoundForeignKey, ...]
    part_of: tuple[str | None, str] | None
    judged: tuple[str, ...] | None
    defaults: tuple[str, ...] | None = None


class CatalogueReader(Protocol):
    """A connection by which one database's tables are read."""

    def default_schema(self) -> str | None:
        """Returns the schema whose tables deltas call without a schema; None when the connection has none."""

    def schemas(self) -> Sequence[str]:
        """Returns the names of all schemas."""

    def table_names(self, schema: str | None) -> Sequence[str]:
        """Returns the names of a schema's tables: neither views nor tables that are stored elsewhere."""

    def tables(self, schema: str | None, names: Sequence[str]) -> Sequence[FoundTable]:
        """Returns these tables of a schema, in the order of ``names``."""


Reading: TypeAlias = Callable[[str], AbstractContextManager[CatalogueReader]]
"""Connects to the target that a URL names, and closes the connection at the end.

Raises TargetUnavailableError when the target does not answer, also in the middle, and CatalogueError when there is no
such database.
"""
