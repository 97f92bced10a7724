"""Columns and unique keys from SQLite's pragmas.

SQLite compares names without regard to case, and writes foreign keys down as they were typed: here
they are spelled as in the tables that they name. Each of its foreign keys can be deferred, by
``PRAGMA defer_foreign_keys`` within a transaction, whatever its declaration says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from kainite.uow.catalogue import Column, TypeFamily, UniqueKey

if TYPE_CHECKING:
    from sqlalchemy import Connection, Inspector, Row

_COLUMNS = text('SELECT name, type, "notnull", pk, hidden FROM pragma_table_xinfo(:table) ORDER BY cid')
_INDEXES = text('SELECT name, origin, partial FROM pragma_index_list(:table) WHERE "unique" ORDER BY name')
_INDEX = text("SELECT name, coll FROM pragma_index_xinfo(:index) WHERE key ORDER BY seqno")

_HIDDEN_GENERATED = (2, 3)

# By the declared type's first word, as databases beside SQLite mean it; SQLite itself takes any word.
_FAMILIES: Mapping[str, TypeFamily] = {
    **dict.fromkeys(
        ("int", "integer", "bigint", "smallint", "tinyint", "mediumint", "int2", "int4", "int8"), TypeFamily.INTEGER
    ),
    **dict.fromkeys(("numeric", "decimal"), TypeFamily.NUMERIC),
    **dict.fromkeys(("text", "varchar", "char", "character", "nchar", "nvarchar", "clob"), TypeFamily.TEXT),
    **dict.fromkeys(("bool", "boolean"), TypeFamily.BOOLEAN),
    "uuid": TypeFamily.UUID,
    "date": TypeFamily.DATE,
}


class SQLite:
    """SQLite 3.31 and later; see :class:`kainite.uow.reflection.Dialect`. The schema is always None."""

    def columns(self, connection: Connection, schema: str | None, tables: Sequence[str]) -> Mapping[str, list[Column]]:
        return {table: _columns(connection, table) for table in tables}

    def unique_keys(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, list[UniqueKey]]:
        return {
            table: [
                UniqueKey(index.name, _told(index, _index_columns(connection, index)))
                for index in connection.execute(_INDEXES, {"table": table})
                if index.origin != "pk"
            ]
            for table in tables
        }

    def foreign_keys(self, inspector: Inspector, schema: str | None, table: str) -> list[Mapping[str, Any]]:
        tables = {name.casefold(): name for name in inspector.get_table_names(schema)}
        own = _spelling(inspector, table)
        found: list[Mapping[str, Any]] = []
        for key in inspector.get_foreign_keys(table, schema):
            parent = tables.get(key["referred_table"].casefold())
            if parent is None:
                continue
            named = key["referred_columns"] or inspector.get_pk_constraint(parent)["constrained_columns"]
            spelled = _spelling(inspector, parent)
            found.append(
                {
                    **key,
                    "referred_table": parent,
                    "constrained_columns": [own[name.casefold()] for name in key["constrained_columns"]],
                    "referred_columns": [spelled[name.casefold()] for name in named],
                    "options": {"deferrable": True},
                }
            )
        return found


def _spelling(inspector: Inspector, table: str) -> dict[str, str]:
    return {column["name"].casefold(): column["name"] for column in inspector.get_columns(table)}


def _columns(connection: Connection, table: str) -> list[Column]:
    folded = _collated_columns(connection, table)
    return [
        Column(
            name=row.name,
            type=row.type,
            family=TypeFamily.OPAQUE if row.name in folded else _family(row.type),
            nullable=not row.notnull and not row.pk,
            generated=row.hidden in _HIDDEN_GENERATED,
        )
        for row in connection.execute(_COLUMNS, {"table": table})
    ]


def _collated_columns(connection: Connection, table: str) -> set[str]:
    """Columns of keys that are not compared byte by byte (NOCASE, RTRIM, the application's own)."""
    indexes = connection.execute(_INDEXES, {"table": table}).all()
    return {
        column.name
        for index in indexes
        for column in _index_columns(connection, index)
        if column.name is not None and column.coll != "BINARY"
    }


def _index_columns(connection: Connection, index: Row[Any]) -> Sequence[Row[Any]]:
    return connection.execute(_INDEX, {"index": index.name}).all()


def _told(index: Row[Any], columns: Sequence[Row[Any]]) -> tuple[str, ...]:
    """The key's columns; none for a partial index or one over expressions."""
    names = tuple(column.name for column in columns)
    return () if index.partial or None in names else names


def _family(declared: str) -> TypeFamily:
    word = re.match(r"\w*", declared.strip().lower())
    return _FAMILIES.get(word[0] if word else "", TypeFamily.OPAQUE)
