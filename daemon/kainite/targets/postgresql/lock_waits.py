"""Asks PostgreSQL which sessions of the apply job wait for locks, and who holds these (``pg_blocking_pids``)."""

from __future__ import annotations

from contextlib import closing
from itertools import groupby
from typing import Final

import psycopg

from kainite.base.errors import TargetUnavailableError
from kainite.base.redaction import redacted, redacted_url
from kainite.targets.lock_waits import LockHolder, LockWait, first_words
from kainite.targets.postgresql.address import libpq_url
from kainite.targets.postgresql.connection import connect

SESSIONS: Final = "kainite apply"
"""What the sessions of the apply job call themselves (``application_name``)."""

# A role sees the texts of its own sessions alone, unless it is a member of pg_read_all_stats: else there is NULL.
_WAITS: Final = """
SELECT w.pid, extract(epoch FROM clock_timestamp() - w.query_start)::float8, w.query,
       b.pid, concat_ws(', ', b.usename, nullif(b.application_name, ''), host(b.client_addr)), b.state,
       extract(epoch FROM clock_timestamp() - b.xact_start)::float8,
       CASE WHEN b.state IS NOT NULL THEN b.query END
FROM pg_stat_activity w
CROSS JOIN LATERAL (SELECT DISTINCT unnest(pg_blocking_pids(w.pid)) AS pid) AS blocking
LEFT JOIN pg_stat_activity b ON b.pid = blocking.pid
WHERE w.datname = current_database() AND w.application_name = %s AND w.wait_event_type = 'Lock'
ORDER BY w.pid, b.pid"""


def lock_waits(url: str) -> tuple[LockWait, ...]:
    """Returns who waits for a lock now.

    Raises:
        TargetUnavailableError: the server does not answer, or refuses to.
    """
    try:
        with closing(connect(libpq_url(url), "kainite uow locks")) as connection:
            rows = connection.execute(_WAITS, (SESSIONS,)).fetchall()
    except psycopg.Error as error:
        raise TargetUnavailableError(f"target {redacted_url(url)}: {redacted(str(error).strip())}") from error
    return tuple(
        LockWait(pid, seconds or 0.0, first_words(query or ""), tuple(_holder(row[3:]) for row in group))
        for (pid, seconds, query), group in groupby(rows, key=lambda row: row[:3])
    )


def _holder(row: tuple[int | None, str, str | None, float | None, str | None]) -> LockHolder:
    pid, who, state, seconds, query = row
    if pid is None:
        return LockHolder(0, "a prepared transaction, or a session that has just ended", None, None, None)
    return LockHolder(pid, who, state, seconds, None if query is None else first_words(query))
