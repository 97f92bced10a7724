"""Lists tables of a source or a target as both sides must agree on them: columns, key, and where the rows are.

Types and names are spelled in full (with an empty search path), so that equal texts mean equal things. A table's rows
are in its *parts*: the table itself, or the leaves of a partitioned one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, LiteralString, TypeAlias

import psycopg
from psycopg.rows import namedtuple_row

TableName: TypeAlias = tuple[str, str]
"""Schema and name of a table."""

_EMPTY_PATH: Final = "SELECT set_config('search_path', '', true)"

# Row filters and column lists came with PostgreSQL 15.
_PUBLISHED: Final = """
    SELECT schemaname AS schema, tablename AS name, to_jsonb(t) ->> 'rowfilter' AS rows,
           CASE WHEN jsonb_typeof(to_jsonb(t) -> 'attnames') = 'array'
                THEN ARRAY(SELECT jsonb_array_elements_text(to_jsonb(t) -> 'attnames')) END AS columns
    FROM pg_publication_tables t WHERE pubname = %s ORDER BY 1, 2"""

_TABLES: Final = """
    SELECT n.nspname AS schema, c.relname AS name, c.oid::bigint AS oid, format('%%I.%%I', n.nspname, c.relname) AS sql,
           c.relreplident::text AS identity,
           coalesce((SELECT sum(greatest(l.reltuples, 0)) FROM parts p JOIN pg_class l ON l.oid = p.part
                     WHERE p.whole = c.oid), 0)::bigint AS rows,
           coalesce((SELECT array_agg(a.attname::text ORDER BY k.place)
                     FROM pg_constraint x, unnest(x.conkey) WITH ORDINALITY AS k (attnum, place), pg_attribute a
                     WHERE x.conrelid = c.oid AND x.contype = 'p' AND a.attrelid = c.oid AND a.attnum = k.attnum),
                    '{}') AS key
    FROM asked q JOIN pg_namespace n ON n.nspname = q.schema
    JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = q.name AND c.relkind IN ('r', 'p') ORDER BY 1, 2"""

_COLUMNS: Final = """
    SELECT a.attrelid::bigint AS oid, a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type,
           a.attnotnull AS not_null, a.attgenerated <> '' AS generated, a.attidentity::text AS identity
    FROM pg_attribute a WHERE a.attrelid = ANY(%s::bigint[]) AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attrelid, a.attnum"""

_PARTS: Final = """
    SELECT p.whole::bigint AS whole, p.part::bigint AS oid, format('%%I.%%I', n.nspname, c.relname) AS sql,
           (pg_relation_size(c.oid) / current_setting('block_size')::int)::bigint AS pages,
           pg_table_size(c.oid)::bigint AS bytes
    FROM parts p JOIN pg_class c ON c.oid = p.part AND c.relkind = 'r' JOIN pg_namespace n ON n.oid = c.relnamespace
    ORDER BY 1, 3"""

_WITH: Final = """
    WITH asked (schema, name) AS (SELECT * FROM unnest(%(schemas)s::text[], %(names)s::text[])),
    parts (whole, part) AS (
        SELECT c.oid, coalesce(t.relid::oid, c.oid)
        FROM asked q JOIN pg_namespace n ON n.nspname = q.schema
        JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = q.name
        LEFT JOIN LATERAL pg_partition_tree(c.oid) t ON t.isleaf
    )"""


@dataclass(frozen=True, slots=True)
class ReplicaColumn:
    """A column.

    Attributes:
        name: its name, unquoted.
        type: its type, with its schema unless it is PostgreSQL's own.
        not_null: whether it takes no NULL.
        generated: whether the server computes it; such a column is never written.
        identity: ``a`` for GENERATED ALWAYS AS IDENTITY, ``d`` for BY DEFAULT, else empty.
    """

    name: str
    type: str
    not_null: bool = False
    generated: bool = False
    identity: str = ""


@dataclass(frozen=True, slots=True)
class TablePart:
    """A table that holds rows itself.

    Attributes:
        oid: its OID.
        sql: its name, quoted and with its schema.
        pages: how many pages it has.
        bytes: its size, with values that are stored apart.
    """

    oid: int
    sql: str
    pages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ReplicaTable:
    """A table.

    Attributes:
        schema, name: its name, unquoted.
        sql: its name, quoted and with its schema.
        columns: its columns, in order.
        key: the names of the primary key's columns, in order.
        identity: its replica identity, as ``pg_class.relreplident`` has it.
        rows: how many rows it has, estimated.
        parts: where its rows are.
        published_columns: the columns that the publication has; None: all that are not computed.
        published_rows: the publication's condition on rows; None: all.
    """

    schema: str
    name: str
    sql: str
    columns: tuple[ReplicaColumn, ...]
    key: tuple[str, ...]
    identity: str
    rows: int
    parts: tuple[TablePart, ...]
    published_columns: frozenset[str] | None = field(default=None)
    published_rows: str | None = None

    @property
    def place(self) -> TableName:
        """Returns schema and name."""
        return self.schema, self.name

    @property
    def full_name(self) -> str:
        """Returns the name as the extractor's records have it."""
        return f"{self.schema}.{self.name}"

    @property
    def copied(self) -> tuple[ReplicaColumn, ...]:
        """Returns the columns whose values are sent; a computed one only where the publication has it by name."""
        wanted = self.published_columns
        return tuple(c for c in self.columns if (not c.generated if wanted is None else c.name in wanted))

    @property
    def bytes(self) -> int:
        """Returns the size of all parts."""
        return sum(part.bytes for part in self.parts)


def published(connection: psycopg.Connection, publication: str) -> tuple[ReplicaTable, ...]:
    """Returns the tables that a publication sends changes of, under the names by which it sends them.

    Raises:
        psycopg.Error: the server does not answer.
    """
    with _qualified(connection):
        rows = _rows(connection, _PUBLISHED, (publication,))
    restricted = {(row.schema, row.name): row for row in rows}
    return tuple(_table(*found, restricted[found[0].schema, found[0].name]) for found in _read(connection, restricted))


def described(connection: psycopg.Connection, names: Collection[TableName]) -> Mapping[TableName, ReplicaTable]:
    """Returns those of the named tables that exist.

    Raises:
        psycopg.Error: the server does not answer.
    """
    return {(found[0].schema, found[0].name): _table(*found, None) for found in _read(connection, names)}


def _read(
    connection: psycopg.Connection, names: Collection[TableName]
) -> Iterator[tuple[Any, list[ReplicaColumn], list[TablePart]]]:
    asked = {"schemas": [schema for schema, _ in names], "names": [name for _, name in names]}
    with _qualified(connection):
        tables = _rows(connection, f"{_WITH}{_TABLES}", asked)
        columns = _rows(connection, _COLUMNS, ([table.oid for table in tables],))
        parts = _rows(connection, f"{_WITH}{_PARTS}", asked)
    for table in tables:
        own = [ReplicaColumn(*column[1:]) for column in columns if column.oid == table.oid]
        yield table, own, [TablePart(*part[1:]) for part in parts if part.whole == table.oid]


def _table(row: Any, columns: Sequence[ReplicaColumn], parts: Sequence[TablePart], restricted: Any) -> ReplicaTable:
    names = None if restricted is None or restricted.columns is None else frozenset(restricted.columns)
    return ReplicaTable(
        row.schema,
        row.name,
        row.sql,
        tuple(columns),
        tuple(row.key),
        row.identity,
        row.rows,
        tuple(parts),
        names,
        None if restricted is None else restricted.rows,
    )


@contextmanager
def _qualified(connection: psycopg.Connection) -> Iterator[None]:
    """Lets names be spelled with their schemas meanwhile."""
    with connection.transaction():
        connection.execute(_EMPTY_PATH)
        yield
        # Inside a transaction of the caller the setting would last.
        connection.execute("SET LOCAL search_path TO DEFAULT")


def _rows(connection: psycopg.Connection, query: LiteralString, values: Any) -> Sequence[Any]:
    return connection.cursor(row_factory=namedtuple_row).execute(query, values).fetchall()
