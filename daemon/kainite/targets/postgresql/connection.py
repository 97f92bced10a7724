"""Opens connections to PostgreSQL that notice a network which swallows packets without a word."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

_CONNECT_SECONDS: Final = 10

_LIVENESS: Final = {
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 40_000,
}
"""Seconds, seconds, probes and milliseconds after which libpq gives a silent connection up."""


def connect(url: str, application_name: str) -> psycopg.Connection:
    """Opens a connection in autocommit mode, which prepares no statements.

    A network that swallows packets is noticed within a minute, unless the URL says otherwise. Without these limits a
    kept connection would wait for TCP's own limit, a quarter of an hour or longer.

    Args:
        url: an address as libpq takes it.
        application_name: how the server lists the connection.

    Raises:
        psycopg.Error: the server does not answer, or refuses the connection.
    """
    given = conninfo_to_dict(url)
    return psycopg.connect(
        make_conninfo(url, **{name: value for name, value in _LIVENESS.items() if name not in given}),
        connect_timeout=_CONNECT_SECONDS,
        application_name=application_name,
        autocommit=True,
        prepare_threshold=None,
    )
