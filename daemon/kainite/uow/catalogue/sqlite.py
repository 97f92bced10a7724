"""Reads columns, unique keys and foreign keys from SQLite's pragmas.

SQLite compares names without regard to case, and stores foreign keys as they were typed; this module
spells their names as in the parent tables. Every foreign key of SQLite can be deferred, by
``PRAGMA defer_foreign_keys`` within a transaction, whatever its declaration says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from kainite.uow.catalogue.introspection import Found
from kainite.uow.catalogue.tables import Action, Column, TypeFamily, UniqueKey

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

_COLUMNS = text('SELECT name, type, "notnull", pk, hidden FROM pragma_table_xinfo(:table) ORDER BY cid')
_INDEXES = text('SELECT name, origin, partial FROM pragma_index_list(:table) WHERE "unique" ORDER BY name')
_INDEX = text("SELECT name, coll FROM pragma_index_xinfo(:index) WHERE key ORDER BY seqno")
_FOREIGN_KEYS = text(
    'SELECT id, "table" AS parent, "from" AS child_column, "to" AS parent_column, on_delete, on_update '
    "FROM pragma_foreign_key_list(:table) ORDER BY id, seq"
)
_MADE = text("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = :table")
_TRIGGERS = text("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = lower(:table)")
_ALL_INDEXES = text("SELECT name, partial FROM pragma_index_list(:table)")

_HIDDEN_GENERATED = (2, 3)
_CHECK = re.compile(r"\bcheck\b", re.IGNORECASE)
_QUOTED = re.compile(r"['\"`\[]|--|/\*")

# The declared type's first word, as other databases mean it; SQLite itself accepts any word.
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
    """SQLite 3.31 and later; see :class:`kainite.uow.catalogue.reflection.Dialect`. The schema is always None."""

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

    def foreign_keys(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, list[Found]]:
        spelled = {table.casefold(): table for table in tables}
        return {table: _foreign_keys(connection, table, spelled) for table in tables}

    def families(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, tuple[str | None, str]]:
        return {}

    def judged(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, tuple[str, ...] | None]:
        return {table: _judged(connection, table) for table in tables}


def _judged(connection: Connection, table: str) -> tuple[str, ...] | None:
    columns = _columns(connection, table)
    if connection.execute(_TRIGGERS, {"table": table}).scalar_one() or any(column.generated for column in columns):
        return None
    for index in connection.execute(_ALL_INDEXES, {"table": table}).all():
        if index.partial or None in (column.name for column in _index_columns(connection, index)):
            return None
    made = connection.execute(_MADE, {"table": table}).scalar_one()
    checks = _checks(made)
    # What is quoted or a comment may hide where a condition ends.
    all_of_them = bool(checks) and _QUOTED.search(made) is not None
    return tuple(column.name for column in columns if all_of_them or _stands_in(column.name, checks))


def _checks(made: str) -> str:
    """Returns the conditions of all CHECKs of a CREATE TABLE statement, perhaps with more."""
    return " ".join(made[match.end() : _end(made, match.end())] for match in _CHECK.finditer(made))


def _end(made: str, begin: int) -> int:
    """Returns the place behind the parenthesis that closes what opens behind ``begin``."""
    depth = 0
    for place in range(begin, len(made)):
        depth += {"(": 1, ")": -1}.get(made[place], 0)
        if depth == 0 and made[place] == ")":
            return place + 1
    return len(made)


def _stands_in(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def _foreign_keys(connection: Connection, table: str, tables: Mapping[str, str]) -> list[Found]:
    """Returns the foreign keys to ``tables``, which are keyed by their names without case."""
    own = _spelling(connection, table)
    found = []
    rows = connection.execute(_FOREIGN_KEYS, {"table": table}).all()
    for _, part in groupby(rows, key=lambda row: row.id):
        key = list(part)
        parent = tables.get(key[0].parent.casefold())
        if parent is None:
            continue
        columns = tuple(own[row.child_column.casefold()] for row in key)
        if key[0].parent_column is None:
            named = _primary_key(connection, parent)
        else:
            spelling = _spelling(connection, parent)
            named = tuple(spelling[row.parent_column.casefold()] for row in key)
        # SQLite does not report the names of constraints.
        name = f"{table}_{'_'.join(columns)}_fkey"
        on_delete, on_update = (_action(word) for word in (key[0].on_delete, key[0].on_update))
        found.append(Found(name, columns, None, parent, named, True, on_delete, on_update))
    return found


def _action(word: str) -> Action:
    return Action(word.lower()) if word.lower() in list(Action) else Action.NO_ACTION


def _spelling(connection: Connection, table: str) -> dict[str, str]:
    """Returns the table's columns by their names without case."""
    return {row.name.casefold(): row.name for row in connection.execute(_COLUMNS, {"table": table})}


def _primary_key(connection: Connection, table: str) -> tuple[str, ...]:
    keyed = [row for row in connection.execute(_COLUMNS, {"table": table}) if row.pk]
    return tuple(row.name for row in sorted(keyed, key=lambda row: row.pk))


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
    """Returns the key columns that are not compared byte by byte (NOCASE, RTRIM, the application's own)."""
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
    """Returns the key's columns; none for a partial index or an index over expressions."""
    names = tuple(column.name for column in columns)
    return () if index.partial or None in names else names


def _family(declared: str) -> TypeFamily:
    word = re.match(r"\w*", declared.strip().lower())
    return _FAMILIES.get(word[0] if word else "", TypeFamily.OPAQUE)
