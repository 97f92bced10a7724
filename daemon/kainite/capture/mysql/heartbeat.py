"""Writes heartbeats into a source, which go the whole way as units of work without deltas.

A heartbeat is a transaction that changes the one row of the table ``kainite_heartbeat``, which the extractor makes in
the database. Its changes are never given, so its unit has a number, a commit time and no deltas
(:mod:`~kainite.capture.mysql.units`). Who reads the binlog again numbers it again, also without the option.

Heartbeats are an aid: a source that takes none (a replica, a user without the right) is told once on standard error,
and is read all the same.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pymysql

from kainite.base import display
from kainite.base.redaction import redacted
from kainite.capture.mysql.table_reading import HEARTBEATS
from kainite.targets.mariadb.connection import connect

_MAKE = f"CREATE TABLE IF NOT EXISTS {HEARTBEATS} (id TINYINT PRIMARY KEY, beat BIGINT NOT NULL) ENGINE=InnoDB"
_BEAT = f"INSERT INTO {HEARTBEATS} VALUES (1, 0) ON DUPLICATE KEY UPDATE beat = beat + 1"
_LIMITS = "SET SESSION lock_wait_timeout = 5, innodb_lock_wait_timeout = 5"


class TableHeartbeat:
    """Writes a heartbeat each ``every`` seconds, over a connection of its own.

    Args:
        url: the database.
        every: seconds between two heartbeats.
        clock: seconds, by a clock that never runs backwards.
        complain: takes the reason why there are no heartbeats, once for each reason.
    """

    def __init__(
        self,
        url: str,
        every: float,
        clock: Callable[[], float] = time.monotonic,
        complain: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
    ) -> None:
        self._url = url
        self._every = every
        self._clock = clock
        self._complain = complain
        self._complaint = ""
        self._due = 0.0
        self._connection: pymysql.connections.Connection | None = None

    def beat(self) -> None:
        """Writes a heartbeat, if one is due; a failure is told, and never raised."""
        if self._clock() < self._due:
            return
        self._due = self._clock() + self._every
        try:
            if self._connection is None or not self._connection.open:
                self._connection = connect(self._url)
                self._connection.query(_LIMITS)
                self._connection.query(_MAKE)
            self._connection.query(_BEAT)
        except pymysql.Error as error:
            self.close()
            told = display.one_line(redacted(f"no heartbeat can be written into the source: {error.args[-1]}"))
            if told != self._complaint:
                self._complaint = told
                self._complain(told)
        else:
            self._complaint = ""

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.open:
            connection.close()
