"""Looks whether a source is closed to writers, before a cut-over.

What can be known, and what cannot: ``default_transaction_read_only`` of the database, or of the server, makes each new
session refuse to write. A session that was there before keeps its own value, a role may have another one, and whoever
wants to write may switch it off. So sessions and roles are listed, and what really commits is watched
(:mod:`kainite.capture.postgresql.quiet_source`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import namedtuple_row

from kainite.replicate.findings import CheckFinding, fine, some_names, warning, wrong

OWN_SESSIONS: Final = "kainite"
"""With what the names of Kainite's own sessions begin (``application_name``)."""

_ABOUT: Final = "source"

# The session's own value may be that of its role; a database's setting goes before the server's.
_CLOSED: Final = """
    WITH own AS (
        SELECT setdatabase, setrole, split_part(c, '=', 2)::boolean AS on_
        FROM pg_db_role_setting, unnest(setconfig) AS c WHERE c LIKE 'default\\_transaction\\_read\\_only=%'
          AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
    )
    SELECT current_database()::text AS database,
           (SELECT on_ FROM own WHERE setdatabase <> 0 AND setrole = 0) AS of_database,
           (SELECT setting = 'on' FROM pg_settings WHERE name = 'default_transaction_read_only'
              AND source IN ('configuration file', 'command line')) AS of_server,
           ARRAY(SELECT r.rolname::text FROM own JOIN pg_roles r ON r.oid = setrole
                 WHERE NOT on_ AND rolcanlogin ORDER BY 1) AS may_write"""
_SESSIONS: Final = f"""
    SELECT pid, concat_ws(', ', usename, nullif(application_name, ''), 'since ' || backend_start::timestamp(0)) AS who
    FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND coalesce(backend_type, 'client backend') = 'client backend' AND application_name NOT LIKE '{OWN_SESSIONS}%'
    ORDER BY backend_start"""
_PREPARED: Final = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared"
END_SESSIONS: Final = f"""SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()\
 AND backend_type = 'client backend' AND application_name NOT LIKE '{OWN_SESSIONS}%' AND pid <> pg_backend_pid()"""


def look_at_writers(connection: psycopg.Connection) -> Iterator[CheckFinding]:
    """Yields who may still write in a source."""
    found = _rows(connection, _CLOSED)[0]
    name = sql.Identifier(found.database).as_string(None)
    closed = found.of_server if found.of_database is None else found.of_database
    if closed:
        yield fine(_ABOUT, f"new sessions of {found.database} cannot write (default_transaction_read_only)")
    else:
        yield wrong(_ABOUT, f"database {found.database} takes writes",
                    f"ALTER DATABASE {name} SET default_transaction_read_only = on; {END_SESSIONS}")  # fmt: skip
    for role in found.may_write:
        yield wrong(_ABOUT, f"role {role} may write all the same",
                    f"ALTER ROLE {sql.Identifier(role).as_string(None)} RESET default_transaction_read_only, in this"
                    " database or in all")  # fmt: skip
    sessions = _rows(connection, _SESSIONS)
    if sessions:
        listed = some_names([f"pid {row.pid} ({row.who})" for row in sessions])
        yield warning("sessions", f"{len(sessions)} others are open, and may write if they were there before that:"
                      f" {listed}", END_SESSIONS)  # fmt: skip
    for row in _rows(connection, _PREPARED):
        yield wrong("sessions", f"transaction {row.gid!r} is prepared, and may still commit",
                    f"ROLLBACK PREPARED {sql.Literal(row.gid).as_string(None)}, or COMMIT PREPARED")  # fmt: skip


def _rows(connection: psycopg.Connection, query: str) -> Sequence[Any]:
    return connection.cursor(row_factory=namedtuple_row).execute(query.encode()).fetchall()
