"""Describes what each kind of database reads differently from its own catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kainite.uow.catalogue.tables import Action, Column, UniqueKey

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Found:
    """A foreign key as the database has it: its parent does not have the name by which deltas call it yet."""

    name: str
    columns: tuple[str, ...]
    parent_schema: str | None
    parent: str
    parent_columns: tuple[str, ...]
    deferrable: bool
    on_delete: Action = Action.NO_ACTION
    on_update: Action = Action.NO_ACTION


class Dialect(Protocol):
    """The queries that differ between kinds of databases; ``schema`` is None for SQLite's only schema."""

    def columns(self, connection: Connection, schema: str | None, tables: Sequence[str]) -> Mapping[str, list[Column]]:
        """Returns the columns of each table, in the table's order."""

    def unique_keys(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, list[UniqueKey]]:
        """Returns the unique constraints and indexes of each table, without the primary key."""

    def foreign_keys(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, list[Found]]:
        """Returns the foreign keys of each table; names are spelled as in the parent tables."""

    def families(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, tuple[str | None, str]]:
        """Returns schema and name of the outermost table that the rows of each partition or heir belong to."""

    def judged(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, tuple[str, ...] | None]:
        """Returns :attr:`~kainite.uow.catalogue.tables.Table.judged` of each table."""
