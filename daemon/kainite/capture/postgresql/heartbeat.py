"""Writes heartbeats into a source: transactions without changes, which go the whole way as units without deltas.

While nothing commits at the source, a pipeline that stands still looks like one that has nothing to do. A heartbeat is
a transaction that has a logical message of :data:`PREFIX` and nothing else (PostgreSQL manual,
*pg_logical_emit_message*). It becomes a unit of work with a number, a commit time and no deltas, is collected,
dispatched and applied like any other, and so the commit time of the newest unit in the target tells the lag of the
whole way.

A heartbeat stands in the WAL as every transaction does. So whoever reads it again numbers it again, also without the
option that writes it.

Heartbeats are an aid: a source that takes none (a standby, a user without the right) is told once on standard error,
and is read all the same. A heartbeat's commit waits for no synchronous standby: that wait has no time limit, and the
extractor, which reads nothing meanwhile, may itself be what the source waits for.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

import psycopg

from kainite.base import display
from kainite.base.redaction import learn, redacted, secrets_in_url
from kainite.capture.postgresql.source_reach import SESSION_NAME

PREFIX: Final = "kainite.heartbeat"
_WRITE: Final = "SELECT pg_logical_emit_message(true, %s, '')"
_CONNECT_LIMIT_S: Final = 10
_OPTIONS: Final = "-c statement_timeout=10s -c synchronous_commit=local"


class Heartbeat:
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
        learn(secrets_in_url(url))
        self._url = url
        self._every = every
        self._clock = clock
        self._complain = complain
        self._complaint = ""
        self._due = 0.0
        self._connection: psycopg.Connection | None = None

    def beat(self) -> None:
        """Writes a heartbeat, if one is due; a failure is told, and never raised."""
        if self._clock() < self._due:
            return
        self._due = self._clock() + self._every
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(
                    self._url,
                    autocommit=True,
                    connect_timeout=_CONNECT_LIMIT_S,
                    options=_OPTIONS,
                    application_name=SESSION_NAME,
                )
            self._connection.execute(_WRITE, [PREFIX])
        except psycopg.Error as error:
            self._tell(display.one_line(redacted(f"no heartbeat can be written into the source: {error}")))
        else:
            self._complaint = ""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _tell(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._complaint = complaint
            self._complain(complaint)
