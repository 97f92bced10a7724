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

_GIVE_UP: Final = "DELETE FROM kainite_log_table WHERE log_partition = %s"

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
        if taking.gives_up:
            cursor.execute(_GIVE_UP, (taking.log_partition,))
        if taking.tables:
            cursor.executemany(_TAKE, [(name, taking.log, taking.log_partition) for name in taking.full_names])
            cursor.execute(_OF_OTHERS, (taking.full_names, taking.log))
            taking.check(dict(cursor.fetchall()))


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
