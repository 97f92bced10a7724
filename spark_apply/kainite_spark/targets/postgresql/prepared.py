"""Prepared transactions in PostgreSQL: looks at them, and finishes them.

``pg_prepared_xacts`` lists those of the whole server. Who finishes one must be connected to its database, as the role
that prepared it, or as a superuser.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import psycopg
from psycopg import errors, sql

from kainite.base.errors import TargetError
from kainite_spark.targets.preparing import PreparedPart, name_in

_PREPARED: Final = """
    SELECT gid, extract(epoch FROM clock_timestamp() - prepared)::float8 FROM pg_prepared_xacts
    WHERE database = current_database() AND left(gid, length(%s)) = %s ORDER BY prepared, gid"""

# Two servers that run have not started in one microsecond; the system's identifier is a standby's, too.
_PLACE: Final = """
    SELECT concat_ws('/', extract(epoch FROM pg_postmaster_start_time()), oid, to_regclass('kainite_fence')::oid)
    FROM pg_database WHERE datname = current_database()"""

_MOST: Final = "SELECT current_setting('max_prepared_transactions')::int"

NEEDED: Final = (
    "PostgreSQL prepares no transactions, and targetCommit=atomic needs them: ALTER SYSTEM SET"
    " max_prepared_transactions = 64, and restart the server; at least twice as many as tasks apply units at once"
    " (docs/targets.md, All targets or none)"
)


def prepare(connection: psycopg.Connection, gid: str) -> None:
    """Prepares the present transaction, which is then over for this connection."""
    connection.execute(sql.SQL("PREPARE TRANSACTION {}").format(gid))


def prepared_under(connection: psycopg.Connection, prefix: str) -> Sequence[PreparedPart]:
    """Returns the prepared transactions of this database whose identifiers begin so, oldest first."""
    rows = connection.execute(_PREPARED, (prefix, prefix))
    named = ((name_in(gid), gid, age) for gid, age in rows)
    return [PreparedPart(name, gid, age) for name, gid, age in named if name is not None]


def finish(connection: psycopg.Connection, gid: str, *, committed: bool) -> bool:
    """Commits a prepared transaction, or rolls it back; returns False where there is none of that identifier.

    Args:
        connection: in no transaction, and with ``autocommit``: neither statement may stand in one.
        gid: the identifier.
        committed: whether it is committed.
    """
    statement = sql.SQL("COMMIT PREPARED {}" if committed else "ROLLBACK PREPARED {}").format(gid)
    try:
        connection.execute(statement)
    except errors.UndefinedObject:
        return False
    return True


def require_preparing(connection: psycopg.Connection) -> None:
    """Raises TargetError where the server prepares no transactions."""
    row = connection.execute(_MOST).fetchone()
    if row is None or row[0] == 0:
        raise TargetError(NEEDED)


def ledger_place(connection: psycopg.Connection) -> str:
    """Returns the server, the database and the table of the fences, as long as the server runs."""
    row = connection.execute(_PLACE).fetchone()
    return str(row[0]) if row is not None else ""
