"""Writes heartbeats into a source: transactions without changes, which go the whole way as units without deltas.

While nothing commits at the source, a pipeline that stands still looks like one that has nothing to do. A heartbeat is
a transaction that has a logical message of :data:`PREFIX` and nothing else (PostgreSQL manual,
*pg_logical_emit_message*). It becomes a unit of work with a number, a commit time and no deltas, is collected,
dispatched and applied like any other, and so the commit time of the newest unit in the target tells the lag of the
whole way.

A heartbeat stands in the WAL as every transaction does. So whoever reads it again numbers it again, also without the
option that writes it.

A heartbeat's commit waits for no synchronous standby: that wait has no time limit, and the
extractor, which reads nothing meanwhile, may itself be what the source waits for.
"""

from __future__ import annotations

from typing import Final

import psycopg

from kainite.base.errors import SourceError
from kainite.base.redaction import learn, secrets_in_url
from kainite.capture.postgresql.source_reach import SESSION_NAME

PREFIX: Final = "kainite.heartbeat"
_WRITE: Final = "SELECT pg_logical_emit_message(true, %s, '')"
_CONNECT_LIMIT_S: Final = 10
_OPTIONS: Final = "-c statement_timeout=10s -c synchronous_commit=local"


class MessageHeartbeat:
    """Writes heartbeats over a connection of its own.

    Args:
        url: the database.
    """

    def __init__(self, url: str) -> None:
        learn(secrets_in_url(url))
        self._url = url
        self._connection: psycopg.Connection | None = None

    def write(self) -> None:
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
            raise SourceError(str(error)) from error

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
