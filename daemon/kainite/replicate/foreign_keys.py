"""Takes foreign keys off a table that is loaded by itself, and makes them again when it is live.

While a table is not live, its rows are of another time than those of other tables: a child may lack its parent, and a
parent its child. So whatever the target would check between it and another table is dropped, in the transaction that
begins the load, and noted in ``kainite_load_foreign_key``. :func:`make_again` makes a foreign key when both its tables
are live: NOT VALID, which holds up writers for an instant, then VALIDATE CONSTRAINT, which holds up none. A partitioned
child takes no NOT VALID before PostgreSQL 18, and is checked under the lock.

A crash leaves a foreign key noted, or made and noted as not validated; :func:`make_again` goes on there. What the
target refuses stays noted, with the cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import namedtuple_row

from kainite.base.errors import CatalogueError
from kainite.base.redaction import redacted
from kainite.replicate import table_ledger
from kainite.replicate.tables import TableName

LOCK_WAIT_S: Final = 30

# A copy of a foreign key on a partition goes and comes with the one that it is a copy of.
_TOUCHING: Final = """
    WITH tree (oid) AS (
        SELECT coalesce(t.relid::oid, c.oid) FROM pg_class c LEFT JOIN LATERAL pg_partition_tree(c.oid) t ON true
        WHERE c.oid = to_regclass(format('%%I.%%I', %s::text, %s::text)))
    SELECT k.conname::text AS name, cn.nspname::text AS child_schema, c.relname::text AS child,
           pn.nspname::text AS parent_schema, p.relname::text AS parent, pg_get_constraintdef(k.oid) AS definition,
           ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS u (attnum, place)
                 JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.attnum ORDER BY u.place) AS columns,
           ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS u (attnum, place)
                 JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.attnum
                 ORDER BY u.place) AS parent_columns,
           k.condeferrable AS deferrable, k.confdeltype::text AS on_delete, k.confupdtype::text AS on_update,
           c.relkind = 'p' AS partitioned, k.convalidated AS valid, k.conparentid <> 0 AS inherited
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace cn ON cn.oid = c.relnamespace
    JOIN pg_class p ON p.oid = k.confrelid JOIN pg_namespace pn ON pn.oid = p.relnamespace
    WHERE k.contype = 'f' AND (k.conrelid IN (SELECT oid FROM tree) OR k.confrelid IN (SELECT oid FROM tree))
    ORDER BY k.conparentid <> 0, 2, 3, 1"""


def take_off(connection: psycopg.Connection, log_partition: str, table: TableName) -> list[str]:
    """Drops the foreign keys of a table and to it, and notes them; in the caller's transaction.

    Args:
        connection: a session with the target.
        log_partition: the log's name in the target.
        table: the table.

    Returns:
        Their names, as ``schema.table constraint``.

    Raises:
        CatalogueError: a foreign key belongs to a table that this one is a part of.
    """
    connection.execute("SET LOCAL search_path TO ''")
    for child in {(row.child_schema, row.child) for row in _touching(connection, table)}:
        connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.Identifier(*child)))
    # Read again behind the locks: a foreign key may have been validated meanwhile.
    own = [row for row in _touching(connection, table) if not row.inherited]
    for row in own:
        connection.execute(_altered(row.child_schema, row.child, sql.SQL("DROP CONSTRAINT {}"), row.name))
    left = _touching(connection, table)
    connection.execute("SET LOCAL search_path TO DEFAULT")
    if left:
        raise CatalogueError(
            f"foreign key {left[0].name} of {left[0].child_schema}.{left[0].child} comes from a partitioned table that"
            f" {'.'.join(table)} is a part of: load the whole table, by way of publish_via_partition_root"
        )
    for row in own:
        connection.execute(table_ledger.NOTE_FOREIGN_KEY, (log_partition, *_noted(connection, row)))
    return [f"{row.child_schema}.{row.child} {row.name}" for row in own]


def make_again(connection: psycopg.Connection, log_partition: str) -> list[str]:
    """Makes the noted foreign keys whose tables are all live, each in a transaction of its own.

    Returns:
        What the target refused, as ``schema.table constraint: cause``.
    """
    refused = []
    rows: list[Any] = connection.cursor(row_factory=namedtuple_row).execute(
        table_ledger.MAKEABLE, (log_partition,)
    ).fetchall()  # fmt: skip
    for row in rows:
        key = (log_partition, row.schema, row.child, row.name)
        try:
            _make(connection, key, row)
        except psycopg.Error as error:
            cause = redacted(" ".join(str(error).split()))
            connection.execute(table_ledger.FOREIGN_KEY_REFUSED, (cause, *key))
            refused.append(f"{row.schema}.{row.child} {row.name}: {cause}")
    return refused


def _make(connection: psycopg.Connection, key: tuple[str, str, str, str], row: Any) -> None:
    """Adds a foreign key, unless somebody else has, then validates it: a repeated validation does nothing."""
    with connection.transaction():
        connection.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'")
        connection.execute(table_ledger.HOLD_VERSION, key[:1])
        claimed = connection.execute(table_ledger.CLAIM_FOREIGN_KEY, key).fetchone()
        if claimed is not None and claimed[0]:
            connection.execute(claimed[0].encode())
            connection.execute(table_ledger.FOREIGN_KEY_ADDED, key)
        if claimed is not None and not row.validate_sql:
            connection.execute(table_ledger.FORGET_FOREIGN_KEY, key)
    if claimed is None or not row.validate_sql:
        return
    # In one transaction: VALIDATE's lock keeps out a load that takes the foreign key off, and notes it, meanwhile.
    with connection.transaction():
        connection.execute(row.validate_sql.encode())
        connection.execute(table_ledger.FORGET_FOREIGN_KEY, key)


def _noted(connection: psycopg.Connection, row: Any) -> tuple[Any, ...]:
    """Returns the columns of the note behind the log's name."""
    later = row.valid and not row.partitioned
    add = _altered(row.child_schema, row.child, sql.SQL("ADD CONSTRAINT {}"), row.name).as_string(connection)
    validate = _altered(row.child_schema, row.child, sql.SQL("VALIDATE CONSTRAINT {}"), row.name)
    return (
        row.name,
        row.child_schema,
        row.child,
        row.parent_schema,
        row.parent,
        row.columns,
        row.parent_columns,
        row.deferrable,
        row.on_delete,
        row.on_update,
        f"{add} {row.definition}{' NOT VALID' if later else ''}",
        validate.as_string(connection) if later else None,
    )


def _altered(schema: str, table: str, change: sql.SQL, constraint: str) -> sql.Composed:
    return sql.SQL("ALTER TABLE {} ").format(sql.Identifier(schema, table)) + change.format(sql.Identifier(constraint))


def _touching(connection: psycopg.Connection, table: TableName) -> Sequence[Any]:
    return connection.cursor(row_factory=namedtuple_row).execute(_TOUCHING, table).fetchall()
