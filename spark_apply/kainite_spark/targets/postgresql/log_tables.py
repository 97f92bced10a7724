"""The log of each table of a PostgreSQL target (:mod:`kainite_spark.targets.log_tables`)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Final

import psycopg

from kainite.base.errors import TargetUnavailableError
from kainite.base.redaction import redacted
from kainite.targets.postgresql.address import libpq_url
from kainite.targets.postgresql.connection import connect
from kainite_spark.targets.log_tables import LogTables

CREATE: Final = """
    CREATE TABLE IF NOT EXISTS kainite_log_table (
        table_name text NOT NULL PRIMARY KEY,
        log text NOT NULL,
        log_partition text NOT NULL
    )"""

_GIVE_UP: Final = b"DELETE FROM kainite_log_table WHERE log_partition = %s AND table_name <> ALL (%s::text[])"

# Waits for another log that takes the same table, and has not committed yet.
_TAKE: Final = b"""
    INSERT INTO kainite_log_table (table_name, log, log_partition)
    SELECT name, %s, %s FROM unnest(%s::text[]) AS name
    ON CONFLICT (table_name) DO UPDATE SET log_partition = excluded.log_partition
    WHERE kainite_log_table.log = excluded.log"""

_OF_OTHERS: Final = b"SELECT table_name, log FROM kainite_log_table WHERE table_name = ANY (%s::text[]) AND log <> %s"
_READABLE: Final = b"SELECT has_table_privilege(to_regclass('kainite_log_table'), 'SELECT')"  # NULL: there is none
_ALL: Final = b"SELECT table_name, log FROM kainite_log_table"


def take(connection: psycopg.Connection, taking: LogTables) -> None:
    """Takes tables for a log, in the caller's transaction; raises CatalogueError if another log has one."""
    names = taking.full_names
    connection.execute(CREATE)
    connection.execute(_TAKE, (taking.log, taking.log_partition, names))
    # A statement of its own, whose snapshot has what was committed while the one before waited.
    taking.check(dict(connection.execute(_OF_OTHERS, (names, taking.log)).fetchall()))


def give_up(connection: psycopg.Connection, taking: LogTables) -> None:
    """Frees the tables that a log has and takes no more, in the caller's transaction."""
    connection.execute(_GIVE_UP, (taking.log_partition, taking.full_names))


def taken_tables(url: str) -> Mapping[str, str]:
    """Returns the log of each table that a log has taken; nothing where the role may not read that.

    Raises:
        TargetUnavailableError: the server does not answer.
    """
    try:
        with closing(connect(libpq_url(url), "kainite doctor")) as connection:
            readable = connection.execute(_READABLE).fetchone()
            return dict(connection.execute(_ALL).fetchall()) if readable and readable[0] else {}
    except psycopg.Error as error:
        raise TargetUnavailableError(redacted(" ".join(str(error).split()))) from None
