"""Reads which logs have been applied to a MariaDB or MySQL database."""

from __future__ import annotations

from contextlib import closing
from typing import Final

import pymysql

from kainite.base.errors import TargetUnavailableError
from kainite.base.redaction import redacted
from kainite.targets.mariadb.connection import connect

_LOGS: Final = "SELECT log_partition FROM kainite_fence ORDER BY log_partition"
_UNREADABLE: Final = (1142, 1146)
"""The server's codes for a table that the role may not read, and for one that is not there."""


def present_logs(url: str) -> tuple[str, ...]:
    """Returns the names of the logs of which an apply job was let in; none where the role may not read them.

    Raises:
        TargetUnavailableError: the server does not answer.
    """
    try:
        with closing(connect(url)) as connection, connection.cursor() as cursor:
            cursor.execute(_LOGS)
            return tuple(name for (name,) in cursor.fetchall())
    except pymysql.Error as error:
        if error.args[0] in _UNREADABLE:
            return ()
        raise TargetUnavailableError(redacted(" ".join(str(error.args[-1]).split()))) from None
