"""Reads columns, unique keys and foreign keys from PostgreSQL's own catalogue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from kainite.uow.catalogue.introspection import Found
from kainite.uow.catalogue.tables import Action, Column, TypeFamily, UniqueKey

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

# A domain is resolved to its base type; format_type spells the column's own type.
_COLUMNS = text("""
WITH RECURSIVE base AS (
    SELECT oid, oid AS base FROM pg_type WHERE typtype <> 'd'
    UNION ALL
    SELECT domain.oid, base.base FROM pg_type domain JOIN base ON domain.typbasetype = base.oid
    WHERE domain.typtype = 'd'
)
SELECT r.relname AS "table", a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
       b.typname AS base, b.typtype = 'e' AS enum, a.atttypid <> b.oid AS domain,
       coalesce(c.collisdeterministic, true) AS deterministic,
       NOT a.attnotnull AS nullable, a.attgenerated <> '' AS generated
FROM pg_attribute a
JOIN pg_class r ON r.oid = a.attrelid
JOIN pg_namespace n ON n.oid = r.relnamespace
JOIN base ON base.oid = a.atttypid
JOIN pg_type b ON b.oid = base.base
LEFT JOIN pg_collation c ON c.oid = a.attcollation
WHERE n.nspname = :schema AND r.relname = ANY(:tables) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY r.relname, a.attnum
""")

# indnullsnotdistinct came with PostgreSQL 15; through JSON it is merely absent before.
_UNIQUE_KEYS = text("""
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
WHERE n.nspname = :schema AND r.relname = ANY(:tables)
  AND (x.indisunique OR x.indisexclusion) AND NOT x.indisprimary
ORDER BY r.relname, i.relname
""")

# A foreign key to a partitioned table has a copy for each partition; the copies are left out.
_FOREIGN_KEYS = text("""
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
WHERE c.contype = 'f' AND n.nspname = :schema AND r.relname = ANY(:tables)
  AND NOT EXISTS (SELECT FROM pg_constraint whole WHERE whole.oid = c.conparentid AND whole.conrelid = c.conrelid)
""")

# All pairs of the database: a table between two others may be in another schema.
_INHERITS = text("""
SELECT c.oid AS child, cn.nspname AS child_schema, c.relname AS child_name,
       p.oid AS parent, pn.nspname AS parent_schema, p.relname AS parent_name
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace cn ON cn.oid = c.relnamespace
JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace pn ON pn.oid = p.relnamespace
WHERE c.relkind IN ('r', 'p') AND p.relkind IN ('r', 'p')
""")

# A whole row in a CHECK is column 0.
_JUDGED = text("""
SELECT r.relname AS "table",
       r.relkind <> 'r' OR r.relispartition OR r.relhassubclass OR r.relhasrules OR r.relrowsecurity
       OR EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = r.oid AND NOT t.tgisinternal)
       OR EXISTS (SELECT FROM pg_index x WHERE x.indrelid = r.oid AND (x.indexprs IS NOT NULL OR x.indpred IS NOT NULL))
       OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = r.oid AND a.attgenerated <> '') AS more,
       ARRAY(SELECT a.attname::text FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
             WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
               AND (t.typtype = 'd' OR EXISTS (
                   SELECT FROM pg_constraint c WHERE c.conrelid = r.oid AND c.contype = 'c'
                     AND (c.conkey IS NULL OR c.conkey = '{}' OR 0 = ANY(c.conkey) OR a.attnum = ANY(c.conkey))))
             ORDER BY a.attnum) AS columns
FROM pg_class r
JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE n.nspname = :schema AND r.relname = ANY(:tables)
""")

_ACTIONS = {"c": Action.CASCADE, "n": Action.SET_NULL, "d": Action.SET_DEFAULT}

_FAMILIES: Mapping[str, TypeFamily] = {
    "int2": TypeFamily.INTEGER,
    "int4": TypeFamily.INTEGER,
    "int8": TypeFamily.INTEGER,
    "numeric": TypeFamily.NUMERIC,
    "text": TypeFamily.TEXT,
    "varchar": TypeFamily.TEXT,
    "bpchar": TypeFamily.TEXT,
    "bool": TypeFamily.BOOLEAN,
    "uuid": TypeFamily.UUID,
    "date": TypeFamily.DATE,
}


class PostgreSQL:
    """PostgreSQL 12 and later, through psycopg 3; see :class:`kainite.uow.catalogue.reflection.Dialect`."""

    def columns(self, connection: Connection, schema: str | None, tables: Sequence[str]) -> Mapping[str, list[Column]]:
        found: defaultdict[str, list[Column]] = defaultdict(list)
        for row in connection.execute(_COLUMNS, {"schema": schema, "tables": list(tables)}):
            column = Column(row.name, row.type, _family(row), nullable=row.nullable, generated=row.generated)
            found[row.table].append(column)
        return found

    def unique_keys(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, list[UniqueKey]]:
        found: defaultdict[str, list[UniqueKey]] = defaultdict(list)
        for row in connection.execute(_UNIQUE_KEYS, {"schema": schema, "tables": list(tables)}):
            columns = () if row.unclear else tuple(row.columns)
            found[row.table].append(UniqueKey(row.name, columns, nulls_distinct=not row.nulls_not_distinct))
        return found

    def foreign_keys(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, list[Found]]:
        found: defaultdict[str, list[Found]] = defaultdict(list)
        for row in connection.execute(_FOREIGN_KEYS, {"schema": schema, "tables": list(tables)}):
            key = Found(
                row.name,
                tuple(row.columns),
                row.parent_schema,
                row.parent,
                tuple(row.parent_columns),
                row.deferrable,
                _ACTIONS.get(row.on_delete, Action.NO_ACTION),
                _ACTIONS.get(row.on_update, Action.NO_ACTION),
            )
            found[row.table].append(key)
        return found

    def families(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, tuple[str | None, str]]:
        named: dict[int, tuple[str, str]] = {}
        neighbours: defaultdict[int, set[int]] = defaultdict(set)
        heirs = set()
        for row in connection.execute(_INHERITS):
            named[row.child] = (row.child_schema, row.child_name)
            named[row.parent] = (row.parent_schema, row.parent_name)
            neighbours[row.child].add(row.parent)
            neighbours[row.parent].add(row.child)
            heirs.add(row.child)
        found: dict[str, tuple[str | None, str]] = {}
        for family in _connected(neighbours):
            # A table with two parents connects their families; the first of the outermost tables stands for all.
            outermost = min(named[oid] for oid in family if oid not in heirs)
            members = {named[oid] for oid in family} - {outermost}
            found.update((name, outermost) for where, name in members if where == schema and name in tables)
        return found

    def judged(
        self, connection: Connection, schema: str | None, tables: Sequence[str]
    ) -> Mapping[str, tuple[str, ...] | None]:
        rows = connection.execute(_JUDGED, {"schema": schema, "tables": list(tables)})
        return {row.table: None if row.more else tuple(row.columns) for row in rows}


def _connected(neighbours: Mapping[int, set[int]]) -> Iterator[set[int]]:
    left = set(neighbours)
    while left:
        family, todo = set[int](), [left.pop()]
        while todo:
            one = todo.pop()
            family.add(one)
            todo.extend(neighbours[one] - family)
        left -= family
        yield family


def _family(row: Row[Any]) -> TypeFamily:
    # A domain over numeric may round, and its scale is not known here.
    if not row.deterministic or (row.base == "numeric" and row.domain):
        return TypeFamily.OPAQUE
    return TypeFamily.TEXT if row.enum else _FAMILIES.get(row.base, TypeFamily.OPAQUE)
