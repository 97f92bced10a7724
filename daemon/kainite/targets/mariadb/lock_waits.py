"""Asks MariaDB or MySQL which transactions wait for locks, and who holds these.

=======  ==============================================================================================================
server   where it stands
=======  ==============================================================================================================
MariaDB  ``information_schema.innodb_lock_waits``, ``innodb_trx``: what the server saw up to 0.1 s ago, and for who asks
         again within 0.1 s the same answer. The role needs the privilege PROCESS
MySQL 8  ``performance_schema.data_lock_waits``, ``information_schema.innodb_trx``. The role needs PROCESS, and SELECT
         on the first of them
=======  ==============================================================================================================

All waits in the target's database are told: a session there has no name of its own. The question to MySQL is written
by its documentation (reference manual 8.0, 17.15.2 and 29.12.13.2): no test runs it on a MySQL.
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

_COLUMNS: Final = """
SELECT r.trx_mysql_thread_id, CAST(TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()) AS double), r.trx_query,
       b.trx_mysql_thread_id, CONCAT_WS(', ', p.user, p.host), p.command,
       CAST(TIMESTAMPDIFF(SECOND, b.trx_started, NOW()) AS double), b.trx_query"""

_SESSIONS: Final = """
JOIN information_schema.processlist q ON q.id = r.trx_mysql_thread_id
LEFT JOIN information_schema.processlist p ON p.id = b.trx_mysql_thread_id
WHERE q.db = DATABASE()
ORDER BY 1, 4"""

_OF_MARIADB: Final = f"""{_COLUMNS}
FROM information_schema.innodb_lock_waits w
JOIN information_schema.innodb_trx r ON r.trx_id = w.requesting_trx_id
JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking_trx_id{_SESSIONS}"""

# A pair of transactions may wait for each other at several locks: it is told once.
_OF_MYSQL: Final = f"""{_COLUMNS}
FROM (SELECT DISTINCT requesting_engine_transaction_id AS waiting, blocking_engine_transaction_id AS blocking
      FROM performance_schema.data_lock_waits WHERE engine = 'INNODB') w
JOIN information_schema.innodb_trx r ON r.trx_id = w.waiting
JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking{_SESSIONS}"""


def lock_waits(url: str) -> tuple[LockWait, ...]:
    """Returns who waits for a lock now.

    Raises:
        TargetUnavailableError: the server does not answer, or refuses to.
    """
    try:
        with closing(connect(url)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT version()")
            cursor.execute(question(str(cursor.fetchall())))
            rows: list[tuple[Any, ...]] = list(cursor.fetchall())
    except pymysql.Error as error:
        raise TargetUnavailableError(f"target {redacted_url(url)}: {redacted(str(error))}") from error
    return tuple(
        LockWait(pid, float(seconds or 0.0), first_words(query or ""), tuple(_holder(row[3:]) for row in group))
        for (pid, seconds, query), group in groupby(rows, key=lambda row: row[:3])
    )


def question(version: str) -> str:
    """Returns the statement that asks a server of this version."""
    return _OF_MARIADB if "MariaDB" in version else _OF_MYSQL


def _holder(row: tuple[int, str | None, str | None, float | None, str | None]) -> LockHolder:
    pid, who, state, seconds, query = row
    shown = None if query is None else first_words(query)
    return LockHolder(pid, who or "", state, None if seconds is None else float(seconds), shown)
