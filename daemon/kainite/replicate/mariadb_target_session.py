"""Sessions with a target that is MariaDB or MySQL, and what they ask about any table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Final

import pymysql

from kainite.capture.mysql.snapshot_tables import backticked
from kainite.replicate.tables import TableName
from kainite.targets.mariadb.connection import connect
from kainite.targets.mariadb.rows import as_target_error, rows_if_there, rows_of

LOCK_WAIT_S: Final = 30
"""Seconds for which a load waits for transactions of the apply job, and of tasks of a load before."""

_GONE: Final = 1094  # there is no such session
# The driver's lock ends with its session, which may be silent while the point is made.
_WAIT: Final = (
    f"SET SESSION innodb_lock_wait_timeout = {LOCK_WAIT_S}, lock_wait_timeout = {LOCK_WAIT_S}, wait_timeout = 86400"
    " /*M!100101 , max_statement_time = 0 */"
)
_HAS_TABLE: Final = """
    SELECT 1 FROM information_schema.tables
    WHERE table_schema = %s AND table_name = %s AND table_type = 'BASE TABLE'"""


@contextmanager
def mariadb_session(url: str) -> Iterator[pymysql.connections.Connection]:
    """Connects to the target, in autocommit mode; raises TargetUnavailableError for any error of the connection."""
    with as_target_error(), closing(connect(url, silent=None)) as connection:
        connection.query(_WAIT)
        yield connection


def end_mariadb_session(connection: pymysql.connections.Connection, holder: int) -> None:
    """Ends a session of the same user; does nothing where it has ended."""
    try:
        connection.query(f"KILL CONNECTION {int(holder)}")
    except pymysql.Error as error:
        if error.args[0] != _GONE:
            raise


def mariadb_tables_with_rows(
    connection: pymysql.connections.Connection, tables: Iterable[TableName]
) -> list[TableName]:
    """Returns those of the tables that have rows, and exist."""
    return [name for name in tables if rows_if_there(connection, f"SELECT 1 FROM {sql_name(*name)} LIMIT 1")]


def mariadb_has_table(connection: pymysql.connections.Connection, table: TableName) -> bool:
    """Tells whether a target has a table."""
    return bool(rows_of(connection, _HAS_TABLE, *table))


def sql_name(*parts: str) -> str:
    """Returns the name of a table, or of anything else, as MariaDB reads it."""
    return ".".join(map(backticked, parts))
