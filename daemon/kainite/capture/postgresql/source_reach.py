"""Says how a source's server is reached, and whether it is away.

libpq's messages are in the server's language and its errors at connecting have no code, so what kept a program from its
source is not read out of them: the server is asked whether it takes connections (``PQping``), which needs no password.
"""

from __future__ import annotations

import os
from typing import Final

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

CONNECT_S: Final = 10
"""Seconds for each host that is tried, where neither the URL nor ``PGCONNECT_TIMEOUT`` says it: a host that answers
nothing must be told as away before the extractor's answer is late."""

SESSION_NAME: Final = "kainite extract"
"""How the source lists the extractor's sessions."""

_ANY: Final = "any"

_AWAY: Final = frozenset({pq.Ping.REJECT, pq.Ping.NO_RESPONSE})
"""The server is starting up, shutting down or recovering; or nothing answers there, or the name is not found."""


def reached_by(url: str, **more: str) -> str:
    """Returns the text by which libpq connects.

    Args:
        url: any connection string of libpq.
        more: parameters that replace those of the URL.

    Raises:
        psycopg.Error: the URL is none.
    """
    given = conninfo_to_dict(url)
    if "connect_timeout" not in given and "PGCONNECT_TIMEOUT" not in os.environ:
        more["connect_timeout"] = str(CONNECT_S)
    return make_conninfo(url, **more)


def is_away(url: str) -> bool:
    """Returns whether the source's server takes no connections at this moment, which nobody has to mend in Kainite.

    A server that refuses this user or database, or has no connection left, is there. A URL that asks for a kind of
    server (``target_session_attrs=read-write``) means none of another kind: until a standby is promoted, its source is
    away.
    """
    try:
        if pq.PGconn.ping(reached_by(url).encode()) in _AWAY:
            return True
        asked = conninfo_to_dict(url).get("target_session_attrs", _ANY)
        return asked != _ANY and not _lets_in(url) and _lets_in(url, target_session_attrs=_ANY)
    except psycopg.Error:
        return False


def _lets_in(url: str, **more: str) -> bool:
    connection = pq.PGconn.connect(reached_by(url, application_name=SESSION_NAME, **more).encode())
    try:
        return connection.status == pq.ConnStatus.OK
    finally:
        connection.finish()
