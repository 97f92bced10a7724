"""Reads PostgreSQL's tables from its own catalogue, ``pg_catalog``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, LiteralString

import psycopg
from psycopg.rows import namedtuple_row

from kainite.base.errors import TargetUnavailableError
from kainite.base.redaction import redacted, redacted_url
from kainite.targets.postgresql.address import libpq_url
from kainite.targets.postgresql.connection import connect
from kainite.targets.postgresql.type_families import family_of
from kainite.targets.postgresql.unfinished_load import foreign_keys_off, is_unfinished
from kainite.uow.catalogue.introspection import CatalogueReader, FoundForeignKey, FoundTable
from kainite.uow.catalogue.tables import Column, ReferentialAction, UniqueKey

_SCHEMAS = r"SELECT nspname AS name FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%%'"

# Ordinary and partitioned tables; a foreign table or a table of one session is no target.
_TABLES = """
SELECT r.relname AS name
FROM pg_class r
JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE n.nspname = %(schema)s AND r.relkind IN ('r', 'p') AND r.relpersistence <> 't'
"""

_PRIMARY_KEYS = """
SELECT r.relname AS "table",
       ARRAY(SELECT a.attname::text FROM unnest(c.conkey) WITH ORDINALITY AS k (attnum, place)
             JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum ORDER BY k.place) AS columns
FROM pg_constraint c
JOIN pg_class r ON r.oid = c.conrelid
JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE c.contype = 'p' AND n.nspname = %(schema)s AND r.relname = ANY(%(tables)s)
"""

# A domain is resolved to its base type; format_type spells the column's own type.
_COLUMNS = """
WITH RECURSIVE base AS (
    SELECT oid, oid AS base FROM pg_type WHERE typtype <> 'd'
    UNION ALL
    SELECT domain.oid, base.base FROM pg_type domain JOIN base ON domain.typbasetype = base.oid
    WHERE domain.typtype = 'd'
)
SELECT r.relname AS "table", a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
       b.typname AS base, b.typtype = 'e' AS enum, a.atttypid <> b.oid AS domain,
       coalesce(c.collisdeterministic, true) AS deterministic,
       NOT a.attnotnull AS nullable, a.attgenerated <> '' AS generated,
       a.attidentity = 'a' AS identity
FROM pg_attribute a
JOIN pg_class r ON r.oid = a.attrelid
JOIN pg_namespace n ON n.oid = r.relnamespace
JOIN base ON base.oid = a.atttypid
JOIN pg_type b ON b.oid = base.base
LEFT JOIN pg_collation c ON c.oid = a.attcollation
WHERE n.nspname = %(schema)s AND r.relname = ANY(%(tables)s) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY r.relname, a.attnum
"""

# indnullsnotdistinct came with PostgreSQL 15; through JSON it is merely absent before.
_UNIQUE_KEYS = """
SELECT r.relname AS "table", i.relname AS name,
       coalesce((to_jsonb(x) ->> 'indnullsnotdistinct')::boolean, false) AS nulls_not_distinct,
       x.indpred IS NOT NULL OR x.indexprs IS NOT NULL OR x.indisexclusion OR EXISTS (
           SELECT FROM unnest(x.indcollation) AS used JOIN pg_collation c ON c.oid = used
           WHERE NOT c.collisdeterministic) AS unclear,
       ARRAY(SELECT a.attname::text FROM unnest(x.indkey) WITH ORDINALITY AS k (attnum, place)
             JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = k.attnum
             WHERE k.place <= x.indnkeyatts ORDER BY k.place) AS columns
FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_class r ON r.oid = x.indrelid
JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE n.nspname = %(schema)s AND r.relname = ANY(%(tables)s)
  AND (x.indisunique OR x.indisexclusion) AND NOT x.indisprimary
ORDER BY r.relname, i.relname
"""

# A foreign key to a partitioned table has a copy for each partition; the copies are left out.
_FOREIGN_KEYS = """
SELECT r.relname AS "table", c.conname AS name, pn.nspname AS parent_schema, p.relname AS parent,
       c.condeferrable AS deferrable, c.confdeltype::text AS on_delete, c.confupdtype::text AS on_update,
       ARRAY(SELECT a.attname::text FROM unnest(c.conkey) WITH ORDINALITY AS k (attnum, place)
             JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum ORDER BY k.place) AS columns,
       ARRAY(SELECT a.attname::text FROM unnest(c.confkey) WITH ORDINALITY AS k (attnum, place)
             JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.attnum ORDER BY k.place) AS parent_columns
FROM pg_constraint c
JOIN pg_class r ON r.oid = c.conrelid
JOIN pg_namespace n ON n.oid = r.relnamespace
JOIN pg_class p ON p.oid = c.confrelid
JOIN pg_namespace pn ON pn.oid = p.relnamespace
WHERE c.contype = 'f' AND n.nspname = %(schema)s AND r.relname = ANY(%(tables)s)
  AND NOT EXISTS (SELECT FROM pg_constraint whole WHERE whole.oid = c.conparentid AND whole.conrelid = c.conrelid)
"""

# All pairs of the database: a table between two others may be in another schema.
_INHERITS = """
SELECT c.oid AS child, cn.nspname AS child_schema, c.relname AS child_name,
       p.oid AS parent, pn.nspname AS parent_schema, p.relname AS parent_name
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace cn ON cn.oid = c.relnamespace
JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace pn ON pn.oid = p.relnamespace
WHERE c.relkind IN ('r', 'p') AND p.relkind IN ('r', 'p')
"""

# A whole row in a CHECK is column 0. Two long values may be too much for an index that takes each of them. A role that
# may not both insert and update whole rows may be refused one change and not the other.
_JUDGED = """
SELECT r.relname AS "table",
       r.relkind <> 'r' OR r.relispartition OR r.relhassubclass OR r.relrowsecurity
       OR NOT has_table_privilege(r.oid, 'INSERT') OR NOT has_table_privilege(r.oid, 'UPDATE')
       OR EXISTS (SELECT FROM pg_index x WHERE x.indrelid = r.oid AND (x.indexprs IS NOT NULL OR x.indpred IS NOT NULL))
       OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = r.oid AND a.attgenerated <> '') AS more,
       ARRAY(SELECT a.attname::text FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
             WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
               AND (t.typtype = 'd' OR EXISTS (
                   SELECT FROM pg_constraint c WHERE c.conrelid = r.oid AND c.contype = 'c'
                     AND (c.conkey IS NULL OR c.conkey = '{}' OR 0 = ANY(c.conkey) OR a.attnum = ANY(c.conkey)))
                 OR (a.attlen = -1 AND EXISTS (
                   SELECT FROM pg_index x JOIN pg_attribute other ON other.attrelid = r.oid
                   WHERE x.indrelid = r.oid AND a.attnum = ANY(x.indkey) AND other.attnum = ANY(x.indkey)
                     AND other.attnum <> a.attnum AND other.attlen = -1)))
             ORDER BY a.attnum) AS columns
FROM pg_class r
JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE n.nspname = %(schema)s AND r.relname = ANY(%(tables)s)
"""

# A trigger before an insert may fill in any column. A domain may have a default of its own.
_DEFAULTS = """
SELECT r.relname AS "table",
       EXISTS (SELECT FROM pg_trigger t
               WHERE t.tgrelid = r.oid AND NOT t.tgisinternal AND t.tgtype & 7 = 7) AS any_column,
       ARRAY(SELECT a.attname::text FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
             WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
               AND (a.atthasdef OR a.attidentity <> '' OR t.typdefault IS NOT NULL)
             ORDER BY a.attnum) AS columns
FROM pg_class r
JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE n.nspname = %(schema)s AND r.relname = ANY(%(tables)s)
"""

_ACTIONS = {
    "c": ReferentialAction.CASCADE,
    "n": ReferentialAction.SET_NULL,
    "d": ReferentialAction.SET_DEFAULT,
}


@contextmanager
def reading(url: str) -> Iterator[CatalogueReader]:
    """Connects to the database and gives a reader of its catalogue, with the foreign keys that a load has taken off.

    Raises:
        TargetUnavailableError: the server does not answer, or refuses to answer; or a load has not made all keys yet.
    """
    with _session(url) as connection:
        if is_unfinished(connection):
            raise TargetUnavailableError(
                f"the keys of {redacted_url(url)} are made at the end of its load: begin again when kainite replicate"
                " status says live"
            )
        yield PostgresCatalogue(connection, with_off=True)


@contextmanager
def reading_unfinished(url: str) -> Iterator[PostgresCatalogue]:
    """Gives a reader of the catalogue as it is, also while a load has still to make keys; raises as :func:`reading`."""
    with _session(url) as connection:
        yield PostgresCatalogue(connection)


@contextmanager
def _session(url: str) -> Iterator[psycopg.Connection]:
    try:
        with closing(connect(libpq_url(url), "kainite catalogue")) as connection, connection.transaction():
            # Behind a pooler a session may have another client's path.
            connection.execute("SET LOCAL search_path TO DEFAULT")
            yield connection
    except psycopg.Error as error:
        cause = redacted(" ".join(str(error).split()))
        raise TargetUnavailableError(f"catalogue of {redacted_url(url)} cannot be read: {cause}") from error


class PostgresCatalogue:
    """PostgreSQL 12 and later; implements :class:`kainite.uow.catalogue.introspection.CatalogueReader`.

    Args:
        connection: a session with the database.
        with_off: whether foreign keys that the load of a table has taken off count as there.
    """

    def __init__(self, connection: psycopg.Connection, *, with_off: bool = False) -> None:
        self._connection = connection
        self._with_off = with_off

    def default_schema(self) -> str | None:
        [row] = self._rows("SELECT current_schema()::text AS name")
        name: str | None = row.name
        return name

    def schemas(self) -> Sequence[str]:
        return [row.name for row in self._rows(_SCHEMAS)]

    def table_names(self, schema: str | None) -> Sequence[str]:
        return [row.name for row in self._rows(_TABLES, schema)]

    def tables(self, schema: str | None, names: Sequence[str]) -> Sequence[FoundTable]:
        primary_keys = {row.table: tuple(row.columns) for row in self._rows(_PRIMARY_KEYS, schema, names)}
        columns = self._columns(schema, names)
        unique_keys = self._unique_keys(schema, names)
        foreign_keys = self._foreign_keys(schema, names)
        families = self._families(schema, names)
        judged = self._judged(schema, names)
        defaults = self._defaults(schema, names)
        return [
            FoundTable(
                schema=schema,
                name=name,
                columns=tuple(columns.get(name, ())),
                primary_key=primary_keys.get(name, ()),
                unique_keys=tuple(unique_keys.get(name, ())),
                foreign_keys=tuple(foreign_keys.get(name, ())),
                part_of=families.get(name),
                judged=judged.get(name),
                defaults=defaults.get(name),
            )
            for name in names
        ]

    def _rows(self, query: LiteralString, schema: str | None = None, tables: Sequence[str] = ()) -> Sequence[Any]:
        cursor = self._connection.cursor(row_factory=namedtuple_row)
        return cursor.execute(query, {"schema": schema, "tables": list(tables)}).fetchall()

    def _columns(self, schema: str | None, tables: Sequence[str]) -> Mapping[str, list[Column]]:
        found: defaultdict[str, list[Column]] = defaultdict(list)
        for row in self._rows(_COLUMNS, schema, tables):
            family = family_of(row.base, enum=row.enum, domain=row.domain, deterministic=row.deterministic)
            found[row.table].append(Column(row.name, row.type, family, row.nullable, row.generated, row.identity))
        return found

    def _unique_keys(self, schema: str | None, tables: Sequence[str]) -> Mapping[str, list[UniqueKey]]:
        """Returns the unique constraints and indexes of each table, without the primary key."""
        found: defaultdict[str, list[UniqueKey]] = defaultdict(list)
        for row in self._rows(_UNIQUE_KEYS, schema, tables):
            columns = () if row.unclear else tuple(row.columns)
            found[row.table].append(UniqueKey(row.name, columns, nulls_distinct=not row.nulls_not_distinct))
        return found

    def _foreign_keys(self, schema: str | None, tables: Sequence[str]) -> Mapping[str, list[FoundForeignKey]]:
        found: defaultdict[str, list[FoundForeignKey]] = defaultdict(list)
        off = foreign_keys_off(self._connection, schema, tables) if self._with_off else ()
        rows = [*self._rows(_FOREIGN_KEYS, schema, tables), *off]
        for row in rows:
            key = FoundForeignKey(
                name=row.name,
                columns=tuple(row.columns),
                parent_schema=row.parent_schema,
                parent=row.parent,
                parent_columns=tuple(row.parent_columns),
                deferrable=row.deferrable,
                on_delete=_ACTIONS.get(row.on_delete, ReferentialAction.NO_ACTION),
                on_update=_ACTIONS.get(row.on_update, ReferentialAction.NO_ACTION),
            )
            if all((key.name, key.columns) != (one.name, one.columns) for one in found[row.table]):
                found[row.table].append(key)
        return found

    def _families(self, schema: str | None, tables: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        """Returns schema and name of the outermost table that the rows of each partition or heir belong to."""
        named: dict[int, tuple[str, str]] = {}
        neighbours: defaultdict[int, set[int]] = defaultdict(set)
        heirs = set()
        for row in self._rows(_INHERITS):
            named[row.child] = (row.child_schema, row.child_name)
            named[row.parent] = (row.parent_schema, row.parent_name)
            neighbours[row.child].add(row.parent)
            neighbours[row.parent].add(row.child)
            heirs.add(row.child)
        found: dict[str, tuple[str, str]] = {}
        for family in _connected(neighbours):
            # A table with two parents connects their families; the first of the outermost tables stands for all.
            outermost = min(named[oid] for oid in family if oid not in heirs)
            members = {named[oid] for oid in family} - {outermost}
            found.update((name, outermost) for where, name in members if where == schema and name in tables)
        return found

    def _judged(self, schema: str | None, tables: Sequence[str]) -> Mapping[str, tuple[str, ...] | None]:
        """Returns :attr:`~kainite.uow.catalogue.tables.Table.judged` of each table."""
        rows = self._rows(_JUDGED, schema, tables)
        return {row.table: None if row.more else tuple(row.columns) for row in rows}

    def _defaults(self, schema: str | None, tables: Sequence[str]) -> Mapping[str, tuple[str, ...] | None]:
        """Returns :attr:`~kainite.uow.catalogue.tables.Table.defaults` of each table."""
        rows = self._rows(_DEFAULTS, schema, tables)
        return {row.table: None if row.any_column else tuple(row.columns) for row in rows}


def _connected(neighbours: Mapping[int, set[int]]) -> Iterator[set[int]]:
    """Yields the sets of tables that inheritance connects."""
    left = set(neighbours)
    while left:
        family, todo = set[int](), [left.pop()]
        while todo:
            one = todo.pop()
            family.add(one)
            todo.extend(neighbours[one] - family)
        left -= family
        yield family
