"""Asks MariaDB which transactions wait for rows, and who has locked these (``information_schema.innodb_lock_waits``).

The server gives the tables' state of up to 0.1 s ago. The role needs the privilege PROCESS. MySQL has these tables no
more, and is refused. All waits in the target's database are told: a session there has no name of its own.
"""

from __future__ import annotations

from contextlib import closing
from itertools import groupby
from typing import Any, Final

import pymysql

from kainite.base.errors import TargetUnavailableError
from kainite.base.redaction import redacted, redacted_url
from kainite.targets.lock_waits import LockHolder, LockWait, first_words
from kainite.targets.mariadb.connection import connect

_WAITS: Final = """
SELECT r.trx_mysql_thread_id, CAST(TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()) AS double), r.trx_query,
       b.trx_mysql_thread_id, CONCAT_WS(', ', p.user, p.host), p.command,
       CAST(TIMESTAMPDIFF(SECOND, b.trx_started, NOW()) AS double), b.trx_query
FROM information_schema.innodb_lock_waits w
JOIN information_schema.innodb_trx r ON r.trx_id = w.requesting_trx_id
JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking_trx_id
JOIN information_schema.processlist q ON q.id = r.trx_mysql_thread_id
LEFT JOIN information_schema.processlist p ON p.id = b.trx_mysql_thread_id
WHERE q.db = DATABASE()
ORDER BY 1, 4"""


def lock_waits(url: str) -> tuple[LockWait, ...]:
    """Returns who waits for a row now.

    Raises:
        TargetUnavailableError: the server does not answer, or refuses to.
    """
    try:
        with closing(connect(url)) as connection, connection.cursor() as cursor:
            cursor.execute(_WAITS)
            rows: list[tuple[Any, ...]] = list(cursor.fetchall())
    except pymysql.Error as error:
        raise TargetUnavailableError(f"target {redacted_url(url)}: {redacted(str(error))}") from error
    return tuple(
        LockWait(pid, float(seconds or 0.0), first_words(query or ""), tuple(_holder(row[3:]) for row in group))
        for (pid, seconds, query), group in groupby(rows, key=lambda row: row[:3])
    )


def _holder(row: tuple[int, str | None, str | None, float | None, str | None]) -> LockHolder:
    pid, who, state, seconds, query = row
    shown = None if query is None else first_words(query)
    return LockHolder(pid, who or "", state, None if seconds is None else float(seconds), shown)
