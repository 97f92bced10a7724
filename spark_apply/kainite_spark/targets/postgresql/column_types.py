"""The types that columns have in the target now, by which a session reads the values of deltas.

A statement spells the types of its columns, since PostgreSQL tells JSON's values apart by them. The catalogue's types
may be older than the table: an ``ALTER COLUMN … TYPE`` asks nobody, and a value that is read by the old type is rounded
or cut without a word. So a session reads the types from the target itself, keeps them, and asks at the end of each
transaction whether the tables that it wrote still have them. It asks last, since its statements have locked the tables
by then: no type changes any more before the commit. If one has changed, nothing is committed, and the session begins
again with the present types.

The same question tells which columns are ``GENERATED ALWAYS AS IDENTITY``: an insert may write them, an update may not.

A statement must not see an older snapshot than its locks, so the session's isolation level is READ COMMITTED.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import psycopg

from kainite.uow.catalogue.tables import Column, Table, TypeFamily
from kainite_spark.targets.postgresql.rendering import table_name

_PRINT: Final = "string_agg(concat_ws(' ', a.attname, a.atttypid, a.atttypmod, a.attidentity), ',' ORDER BY a.attnum)"
_OF_TABLE: Final = "pg_attribute a WHERE a.attrelid = to_regclass({}) AND a.attnum > 0 AND NOT a.attisdropped"

_READ: Final = f"""
    WITH RECURSIVE base AS (
        SELECT oid, oid AS base FROM pg_type WHERE typtype <> 'd'
        UNION ALL
        SELECT domain.oid, base.base FROM pg_type domain JOIN base ON domain.typbasetype = base.oid
        WHERE domain.typtype = 'd')
    SELECT {_PRINT}, array_agg(a.attname::text ORDER BY a.attnum),
           array_agg(format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum),
           array_agg(a.attidentity = 'a' ORDER BY a.attnum),
           array_agg((SELECT base.base IN ('json'::regtype, 'jsonb'::regtype) FROM base WHERE base.oid = a.atttypid)
                     ORDER BY a.attnum)
    FROM {_OF_TABLE.format("%s")}"""

_CHANGED: Final = f"""
    SELECT count(*) FROM unnest(%s::text[], %s::text[]) AS known (name, print)
    WHERE print IS DISTINCT FROM (SELECT {_PRINT} FROM {_OF_TABLE.format("name")})"""


@dataclass(slots=True)
class ColumnTypes:
    """Keeps the types of the columns of the tables that a session has written.

    Attributes:
        tables: the tables of the catalogue with the types that their columns have in the target.
        prints: what tells whether a table's types have changed; None for a table that does not exist.
    """

    tables: dict[str, Table] = field(default_factory=dict)
    prints: dict[str, str | None] = field(default_factory=dict)

    def table(self, connection: psycopg.Connection, table: Table) -> Table:
        """Returns a table of the catalogue with the types of the target, which is asked once."""
        found = self.tables.get(table.name)
        if found is None:
            row = connection.execute(_READ, (table_name(table),)).fetchone()
            assert row is not None, "an aggregate has a row"
            self.prints[table.name], *columns = row
            rows = list(zip(*(column or () for column in columns), strict=True))
            found = self.tables[table.name] = _typed(table, {name: tuple(rest) for name, *rest in rows})
        return found

    def ask(self, connection: psycopg.Connection, names: Iterable[str]) -> psycopg.Cursor:
        """Asks whether tables have got other types; :func:`changed` reads the answer."""
        known = list(names)
        asked = [table_name(self.tables[name]) for name in known], [self.prints[name] for name in known]
        return connection.execute(_CHANGED, asked)

    def forget(self) -> None:
        """Forgets all types, so that they are read anew."""
        self.tables.clear()
        self.prints.clear()


def changed(answer: psycopg.Cursor) -> bool:
    """Returns whether a table has got other types, as the target answered."""
    row = answer.fetchone()
    return row is not None and row[0] != 0


def _typed(table: Table, types: Mapping[str, tuple[Any, ...]]) -> Table:
    # A column that is gone keeps the catalogue's type: the target refuses the statement that names it.
    columns = {
        name: _of_type(column, *types[name]) if name in types else column for name, column in table.columns.items()
    }
    return replace(table, columns=columns)


def _of_type(column: Column, kind: str, identity: bool, document: bool) -> Column:
    if document:
        return replace(column, type=kind, family=TypeFamily.DOCUMENT, identity=identity)
    family = TypeFamily.OPAQUE if column.family is TypeFamily.DOCUMENT else column.family
    return replace(column, type=kind, family=family, identity=identity)
