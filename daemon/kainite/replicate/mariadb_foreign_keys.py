"""Takes foreign keys off a table of MariaDB that is loaded by itself, and makes them again when it is live.

:mod:`kainite.replicate.mariadb_table_ledger` says in which order, and what a crash leaves. Each statement here commits
by itself, and each function may be called again after a crash in its middle.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pymysql

from kainite.capture.mysql.snapshot_tables import backticked
from kainite.replicate import mariadb_table_ledger as table_ledger
from kainite.replicate.mariadb_foreign_keys_lock import foreign_keys_alone
from kainite.replicate.mariadb_target_session import sql_name
from kainite.replicate.tables import TableName
from kainite.targets.mariadb.rows import line_of, rows_of

ORPHANS: Final = 5
"""Most rows without a parent that a cause names."""

_CHECKED: Final = "SET SESSION foreign_key_checks = 1"
_UNCHECKED: Final = "SET SESSION foreign_key_checks = 0"

# By two queries: MariaDB looks at one table of a database where its name is a constant, and else at all of them.
_KEYS: Final = """
    SELECT k.constraint_name, k.table_schema, k.table_name, k.referenced_table_schema, k.referenced_table_name,
           k.column_name, k.referenced_column_name, r.delete_rule, r.update_rule
    FROM information_schema.key_column_usage k JOIN information_schema.referential_constraints r
      ON r.constraint_schema = k.constraint_schema AND r.constraint_name = k.constraint_name
     AND r.table_name = k.table_name
    WHERE k.referenced_table_name IS NOT NULL
      AND (k.table_schema = %s AND k.table_name = %s OR k.referenced_table_schema = %s AND k.referenced_table_name = %s)
    ORDER BY k.table_schema, k.table_name, k.constraint_name, k.ordinal_position"""
_IS_THERE: Final = """
    SELECT 1 FROM information_schema.referential_constraints
    WHERE constraint_schema = %s AND table_name = %s AND constraint_name = %s"""


@dataclass(frozen=True, slots=True)
class NotedForeignKey:
    """A foreign key of a MariaDB target.

    Attributes:
        name: its name.
        child, parent: both tables.
        columns, parent_columns: the child's columns, and those of the parent that they name.
        on_delete, on_update: what becomes of the child's rows, as SQL.
    """

    name: str
    child: TableName
    parent: TableName
    columns: tuple[str, ...]
    parent_columns: tuple[str, ...]
    on_delete: str
    on_update: str

    @property
    def full_name(self) -> str:
        """Returns its name as people read it."""
        return f"{'.'.join(self.child)} {self.name}"

    @property
    def drop(self) -> str:
        """Returns the statement that drops it."""
        return f"ALTER TABLE {sql_name(*self.child)} DROP FOREIGN KEY {backticked(self.name)}"

    @property
    def add(self) -> str:
        """Returns the statement that makes it."""
        return (
            f"ALTER TABLE {sql_name(*self.child)} ADD CONSTRAINT {backticked(self.name)}"
            f" FOREIGN KEY ({', '.join(map(backticked, self.columns))})"
            f" REFERENCES {sql_name(*self.parent)} ({', '.join(map(backticked, self.parent_columns))})"
            f" ON DELETE {self.on_delete} ON UPDATE {self.on_update}"
        )

    def orphans(self, connection: pymysql.connections.Connection) -> str:
        """Returns which rows lack their parent; empty where none does; raises pymysql.Error."""
        pairs = [(backticked(one), backticked(other)) for one, other in zip(self.columns, self.parent_columns,
                                                                           strict=True)]  # fmt: skip
        joined = " AND ".join(f"p.{other} = c.{one}" for one, other in pairs)
        known = " AND ".join(f"c.{one} IS NOT NULL" for one, _ in pairs)
        query = (
            f"SELECT {', '.join(f'c.{one}' for one, _ in pairs)} FROM {sql_name(*self.child)} c"
            f" LEFT JOIN {sql_name(*self.parent)} p ON {joined}"
            f" WHERE {known} AND p.{pairs[0][1]} IS NULL LIMIT {ORPHANS}"
        )
        rows = rows_of(connection, query)
        if not rows:
            return ""
        told = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
        return (
            f"foreign key {self.name} of {'.'.join(self.child)}: no row of {sql_name(*self.parent)} for"
            f" {', '.join(one for one, _ in pairs)} in {told}"
        )


def take_off(connection: pymysql.connections.Connection, log_partition: str, table: TableName) -> list[str]:
    """Notes the foreign keys of a table and to it, then drops them; with :func:`foreign_keys_alone` entered.

    Returns:
        Their names, as ``schema.table constraint``.

    Raises:
        pymysql.Error: the target refused, or a table was locked for long.
    """
    touching = foreign_keys_of(connection, table)
    with connection.cursor() as cursor:
        for one in touching:
            cursor.execute(table_ledger.NOTE_FOREIGN_KEY, (log_partition, *_noted(one)))
    for one in touching:
        connection.query(one.drop)
    return [one.full_name for one in touching]


def make_again(connection: pymysql.connections.Connection, log_partition: str) -> list[str]:
    """Makes the noted foreign keys whose tables are all live.

    Returns:
        What the target refused, as ``schema.table constraint: cause``.
    """
    refused = []
    for one in _makeable(connection, log_partition):
        key = (log_partition, *one.child, one.name)
        try:
            cause = _made(connection, log_partition, one)
        except pymysql.Error as error:
            cause = line_of(error)
        if cause:
            with connection.cursor() as cursor:
                cursor.execute(table_ledger.FOREIGN_KEY_REFUSED, (cause, *key))
            refused.append(f"{one.full_name}: {cause}")
    return refused


def foreign_keys_of(connection: pymysql.connections.Connection, table: TableName) -> Sequence[NotedForeignKey]:
    """Returns the foreign keys that are there of a table, and to it."""
    columns: dict[tuple[str, TableName, TableName, str, str], list[tuple[str, str]]] = {}
    for name, schema, child, parent_schema, parent, column, named, deletes, updates in rows_of(
        connection, _KEYS, *table, *table
    ):
        key = (name, (schema, child), (parent_schema, parent), deletes, updates)
        columns.setdefault(key, []).append((column, named))
    return [
        NotedForeignKey(
            name, child, parent, tuple(one for one, _ in pairs), tuple(other for _, other in pairs), deletes, updates
        )
        for (name, child, parent, deletes, updates), pairs in columns.items()
    ]


def _made(connection: pymysql.connections.Connection, log_partition: str, one: NotedForeignKey) -> str:
    """Makes a foreign key, looks at the rows, and forgets the note; returns why it cannot be.

    The look at the rows takes as long as it takes, and keeps nobody out: a load that has begun meanwhile has dropped
    the foreign key again, and needs the note.
    """
    with foreign_keys_alone(connection, log_partition):
        if one not in _makeable(connection, log_partition):
            return ""
        if not _is_there(connection, one):
            rows_of(connection, f"SELECT 1 FROM {sql_name(*one.parent)} LIMIT 0")  # unchecked, it need not be there
            connection.query(_UNCHECKED)
            try:
                connection.query(one.add)
            finally:
                with suppress(pymysql.Error):  # a session that is lost needs no setting
                    connection.query(_CHECKED)
    if cause := one.orphans(connection):
        return cause
    with foreign_keys_alone(connection, log_partition), connection.cursor() as cursor:
        if _is_there(connection, one):
            cursor.execute(table_ledger.FORGET_FOREIGN_KEY, (log_partition, *one.child, one.name))
    return ""


def _makeable(connection: pymysql.connections.Connection, log_partition: str) -> list[NotedForeignKey]:
    return [
        NotedForeignKey(name, (schema, child), (parent_schema, parent), tuple(json.loads(columns)),
                        tuple(json.loads(named)), deletes, updates)
        for name, schema, child, parent_schema, parent, columns, named, deletes, updates in rows_of(
            connection, table_ledger.MAKEABLE, log_partition)
    ]  # fmt: skip


def _is_there(connection: pymysql.connections.Connection, one: NotedForeignKey) -> bool:
    return bool(rows_of(connection, _IS_THERE, *one.child, one.name))


def _noted(one: NotedForeignKey) -> tuple[str, ...]:
    columns, named = json.dumps(one.columns), json.dumps(one.parent_columns)
    return (one.name, *one.child, *one.parent, columns, named, one.on_delete, one.on_update)
