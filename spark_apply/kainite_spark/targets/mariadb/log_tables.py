"""The log of each table of a MariaDB or MySQL target (:mod:`kainite_spark.targets.log_tables`)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Final

import pymysql

from kainite.base.errors import TargetUnavailableError
from kainite.base.redaction import redacted
from kainite.targets.mariadb.connection import connect
from kainite_spark.targets.log_tables import LogTables

# One log at a time, or InnoDB finds deadlocks between logs that take different tables: each writes a row of no table
# first, which nobody sees. Clusters may refuse GET_LOCK.
_ONE_AT_A_TIME: Final = """
    INSERT INTO kainite_log_table (table_name, log, log_partition) VALUES ('', '', '')
    ON DUPLICATE KEY UPDATE log_partition = ''"""
_LET_OTHERS: Final = "DELETE FROM kainite_log_table WHERE table_name = ''"

# By primary key: whoever looks for its rows with locks, waits for what other logs take at the same time.
_OF_LOG: Final = "SELECT table_name FROM kainite_log_table WHERE log_partition = %s"
_GIVE_UP: Final = "DELETE FROM kainite_log_table WHERE table_name = %s AND log_partition = %s"

# Waits for another log that takes the same table, and has not committed yet; then its row stays as it is.
_TAKE: Final = """
    INSERT INTO kainite_log_table (table_name, log, log_partition) VALUES (%s, %s, %s)
    ON DUPLICATE KEY UPDATE log_partition = IF(log = VALUES(log), VALUES(log_partition), log_partition)"""

# A locking read sees what was committed last, whatever the transaction's snapshot.
_OF_OTHERS: Final = "SELECT table_name, log FROM kainite_log_table WHERE table_name IN %s AND log <> %s FOR UPDATE"
_ALL: Final = "SELECT table_name, log FROM kainite_log_table"
_UNREADABLE: Final = (1142, 1146)
"""The server's codes for a table that the role may not read, and for one that is not there."""


def take(connection: pymysql.connections.Connection, taking: LogTables) -> None:
    """Takes tables for a log, in the caller's transaction; raises CatalogueError if another log has one."""
    with connection.cursor() as cursor:
        cursor.execute(_ONE_AT_A_TIME)
        if taking.tables:
            cursor.executemany(_TAKE, [(name, taking.log, taking.log_partition) for name in taking.full_names])
            cursor.execute(_OF_OTHERS, (taking.full_names, taking.log))
            taking.check(dict(cursor.fetchall()))
        cursor.execute(_LET_OTHERS)


def give_up(connection: pymysql.connections.Connection, taking: LogTables) -> None:
    """Frees the tables that a log has and takes no more, in the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute(_OF_LOG, (taking.log_partition,))
        for row in taking.given_up(name for (name,) in cursor.fetchall()):
            cursor.execute(_GIVE_UP, row)


def taken_tables(url: str) -> Mapping[str, str]:
    """Returns the log of each table that a log has taken; nothing where the role may not read that.

    Raises:
        TargetUnavailableError: the server does not answer.
    """
    try:
        with closing(connect(url)) as connection, connection.cursor() as cursor:
            cursor.execute(_ALL)
            return dict(cursor.fetchall())
    except pymysql.Error as error:
        if error.args[0] in _UNREADABLE:
            return {}
        raise TargetUnavailableError(redacted(" ".join(str(error.args[-1]).split()))) from None
