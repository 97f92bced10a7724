"""Tells whether connections lead through a pooler in transaction mode, such as PgBouncer.

Such a pooler gives a client a session of the server for each transaction anew. What a session keeps is then another
client's: settings, ``SET ROLE``, locks that a session holds, its name, its temporary tables.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

import psycopg

OWN_PORT: Final = "name the server's own port, or a pool in session mode"
"""The remedy where a session is needed."""

OWN_POOL: Final = "give Kainite a role of its own, which is a pool of its own, or name the server's own port"
"""The remedy where none is needed, and other clients' settings disturb."""

_PID: Final = "SELECT pg_backend_pid()"
_TRIES: Final = 3
"""Other clients may take and give back the sessions while one looks."""


def leads_through_pooler(connect: Callable[[], psycopg.Connection]) -> bool:
    """Tells whether two clients of an address share sessions of the server.

    Args:
        connect: opens a connection in autocommit mode.

    Raises:
        psycopg.Error: the server does not answer.
    """
    with closing(connect()) as one, closing(connect()) as other:
        return share_sessions(one, other)


def is_own(connection: psycopg.Connection) -> bool:
    """Tells whether a statement of a connection, in autocommit mode, had a session of its own."""
    return _process(connection) == connection.info.backend_pid


def share_sessions(one: psycopg.Connection, other: psycopg.Connection) -> bool:
    """Tells whether two connections of one address, in autocommit mode, are given sessions that are not their own.

    A server tells its process in the key for cancelling; a pooler has keys of its own. So one statement tells a session
    of one's own, also where a balancer leads each connection to another server.
    """
    for _ in range(_TRIES):
        first = _process(one)
        if first == one.info.backend_pid:
            return False
        if first == _process(other) or first != _process(one):
            return True
    return False


def _process(connection: psycopg.Connection) -> int:
    row: Any = connection.execute(_PID).fetchone()
    return int(row[0])
