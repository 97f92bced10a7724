"""Describes what each kind of database reads differently from its own catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from kainite.uow.catalogue.tables import Column, UniqueKey

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class Found:
    """A foreign key as it stands in the database: its parent is not named by Kainite's rules yet."""

    name: str
    columns: tuple[str, ...]
    parent_schema: str | None
    parent: str
    parent_columns: tuple[str, ...]
    deferrable: bool


class Dialect(Protocol):
    """What is read differently from each kind of database; ``schema`` is None for SQLite's own."""

    def columns(self, connection: Connection, schema: str | None, tables: Sequence[str]) -> Mapping[str, list[Column]]:
        """Columns of each table, in their order."""

    def unique_keys(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, list[UniqueKey]]:
        """Unique constraints and indexes of each table, but for the primary key."""

    def foreign_keys(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, list[Found]]:
        """Foreign keys of each table, names spelled as in the tables that they name."""
