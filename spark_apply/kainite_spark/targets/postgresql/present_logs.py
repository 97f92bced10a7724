"""Reads which logs have been applied to a PostgreSQL database."""

from __future__ import annotations

from contextlib import closing
from typing import Final

import psycopg

from kainite.base.errors import TargetUnavailableError
from kainite.base.redaction import redacted
from kainite.targets.postgresql.address import libpq_url
from kainite.targets.postgresql.connection import connect

_READABLE: Final = b"SELECT has_table_privilege(to_regclass('kainite_fence'), 'SELECT')"  # NULL: there is no such table
_LOGS: Final = b"SELECT log_partition FROM kainite_fence ORDER BY log_partition"


def present_logs(url: str) -> tuple[str, ...]:
    """Returns the names of the logs of which an apply job was let in; none where the role may not read them.

    Raises:
        TargetUnavailableError: the server does not answer.
    """
    try:
        with closing(connect(libpq_url(url), "kainite doctor")) as connection:
            readable = connection.execute(_READABLE).fetchone()
            return tuple(name for (name,) in connection.execute(_LOGS)) if readable and readable[0] else ()
    except psycopg.Error as error:
        raise TargetUnavailableError(redacted(" ".join(str(error).split()))) from None
