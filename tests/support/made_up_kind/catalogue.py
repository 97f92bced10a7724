"""Reads a shelf's tables, without the tables that it hides."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from kainite.targets.sqlite.catalogue import SqliteCatalogue
from kainite.uow.catalogue.introspection import CatalogueReader, FoundTable
from support.made_up_kind.address import path_of


class ShelfCatalogue:
    """Implements :class:`kainite.uow.catalogue.introspection.CatalogueReader`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._tables = SqliteCatalogue(connection)

    def default_schema(self) -> str | None:
        return None

    def schemas(self) -> Sequence[str]:
        return []

    def table_names(self, schema: str | None) -> Sequence[str]:
        return [name for name in self._tables.table_names(schema) if not name.startswith("hidden_")]

    def tables(self, schema: str | None, names: Sequence[str]) -> Sequence[FoundTable]:
        return self._tables.tables(schema, names)


@contextmanager
def reading(url: str) -> Iterator[CatalogueReader]:
    with closing(sqlite3.connect(path_of(url))) as connection:
        connection.row_factory = sqlite3.Row
        yield ShelfCatalogue(connection)
