"""What a load has taken from a target's catalogue for a while, and gives back: keys, and foreign keys.

A daemon that reads a catalogue without them orders units wrongly: a child may pass its parent. The load of a whole
replica makes the keys last (:mod:`kainite.replicate.ledger`), and who reads the catalogue waits for them. The load of a
single table takes off its foreign keys, notes them (:mod:`kainite.replicate.foreign_keys`), and may go on for days; so
these count as there. A target that believes in them without reason writes in an order that is right with or without
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg.rows import namedtuple_row

_LOAD: Final = "SELECT to_regclass('kainite_load_step') IS NOT NULL"
_UNFINISHED: Final = """
SELECT EXISTS (SELECT FROM kainite_load l JOIN kainite_load_step s USING (log_partition)
               WHERE l.state <> 'live' AND s.stage >= 1000000 AND s.done_at IS NULL)
"""
_NOTED: Final = "SELECT to_regclass('kainite_load_foreign_key') IS NOT NULL"

# A foreign key of a partitioned table is one of each partition.
_FOREIGN_KEYS: Final = """
SELECT DISTINCT r.relname AS "table", k.constraint_name AS name, k.parent_schema, k.parent_name AS parent,
       k.may_defer AS deferrable, k.on_delete, k.on_update, k.child_columns AS columns, k.parent_columns
FROM kainite_load_foreign_key k
CROSS JOIN LATERAL (SELECT to_regclass(format('%%I.%%I', k.child_schema, k.child_name)) AS oid) c
JOIN pg_class r ON r.oid = c.oid OR r.oid IN (SELECT relid FROM pg_partition_tree(c.oid))
JOIN pg_namespace n ON n.oid = r.relnamespace
WHERE n.nspname = %(schema)s AND r.relname = ANY(%(tables)s)
  AND k.child_columns <@ ARRAY(SELECT attname::text FROM pg_attribute WHERE attrelid = r.oid AND NOT attisdropped)
"""


def is_unfinished(connection: psycopg.Connection) -> bool:
    """Tells whether a load of the whole replica has still to make keys."""
    return _one(connection, _LOAD) and _one(connection, _UNFINISHED)


def foreign_keys_off(connection: psycopg.Connection, schema: str | None, tables: Sequence[str]) -> Sequence[Any]:
    """Returns the foreign keys of some tables that loads of single tables have taken off."""
    if not _one(connection, _NOTED):
        return ()
    cursor = connection.cursor(row_factory=namedtuple_row)
    return cursor.execute(_FOREIGN_KEYS, {"schema": schema, "tables": list(tables)}).fetchall()


def _one(connection: psycopg.Connection, query: str) -> bool:
    row = connection.execute(query.encode()).fetchone()
    return row is not None and bool(row[0])
