"""Writes heartbeats into a source, which go the whole way as units of work without deltas.

A heartbeat is a transaction that changes the one row of the table ``kainite_heartbeat``, which the extractor makes in
the database. Its changes are never given, so its unit has a number, a commit time and no deltas
(:mod:`~kainite.capture.mysql.units`). Who reads the binlog again numbers it again, also without the option.
"""

from __future__ import annotations

import pymysql

from kainite.base.errors import SourceError
from kainite.capture.mysql.table_reading import HEARTBEATS
from kainite.targets.mariadb.connection import connect

_MAKE = f"CREATE TABLE IF NOT EXISTS {HEARTBEATS} (id TINYINT PRIMARY KEY, beat BIGINT NOT NULL) ENGINE=InnoDB"
_BEAT = f"INSERT INTO {HEARTBEATS} VALUES (1, 0) ON DUPLICATE KEY UPDATE beat = beat + 1"
_LIMITS = "SET SESSION lock_wait_timeout = 5, innodb_lock_wait_timeout = 5"


class TableHeartbeat:
    """Writes heartbeats over a connection of its own.

    Args:
        url: the database.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: pymysql.connections.Connection | None = None

    def write(self) -> None:
        try:
            if self._connection is None or not self._connection.open:
                self._connection = connect(self._url)
                self._connection.query(_LIMITS)
                self._connection.query(_MAKE)
            self._connection.query(_BEAT)
        except pymysql.Error as error:
            self.close()
            raise SourceError(str(error.args[-1])) from error

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.open:
            connection.close()
