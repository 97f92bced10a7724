"""Opens connections to PostgreSQL: they notice a network which swallows packets without a word, and speak UTF-8.

libpq quotes what it cannot read of an address, a password too. So an address is learned before it is used, and an error
that shows a secret is replaced by one that does not, without the first one as its cause.
"""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from kainite.base.redaction import learn, redacted, secrets_in_url

_CONNECT_SECONDS: Final = 10

_LIVENESS: Final = {
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 40_000,
}
"""Seconds, seconds, probes and milliseconds after which libpq gives a silent connection up."""


def connect(url: str, application_name: str, seconds: int = _CONNECT_SECONDS) -> psycopg.Connection:
    """Opens a connection in autocommit mode, which prepares no statements.

    Whatever the database's encoding is, texts go to the server as UTF-8, and the server converts them. It refuses a
    character that its encoding lacks, as it refuses any other value.

    A network that swallows packets is noticed within a minute, unless the URL says otherwise. Without these limits a
    kept connection would wait for TCP's own limit, a quarter of an hour or longer.

    Args:
        url: an address as libpq takes it.
        application_name: how the server lists the connection.
        seconds: for how long it is tried.

    Raises:
        psycopg.Error: the server does not answer, or refuses the connection.
    """
    learn(secrets_in_url(url))
    try:
        given = conninfo_to_dict(url)
        return psycopg.connect(
            make_conninfo(url, **{name: value for name, value in _LIVENESS.items() if name not in given}),
            connect_timeout=seconds,
            application_name=application_name,
            client_encoding="UTF8",
            autocommit=True,
            prepare_threshold=None,
        )
    except psycopg.Error as error:
        shown = redacted(str(error))
        if shown == str(error):
            raise
        raise type(error)(shown) from None
