"""Reads a database of either kind, each answer in one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Protocol, TypeAlias

import psycopg

from kainite.base.errors import DemoError

Rows: TypeAlias = list[tuple[Any, ...]]

_APPLIED = """
    SELECT uow, at FROM (
        SELECT uow, (extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000000)::bigint AS at FROM kainite_applied
    ) AS applied WHERE at > %s"""
# MariaDB does not tell when a transaction committed: this is when it wrote its acknowledgement, just before.
_APPLIED_IN_MARIADB = """
    SELECT uow, at FROM (
        SELECT uow, CAST(UNIX_TIMESTAMP(applied_at) * 1000000 AS signed) AS at FROM kainite_applied
    ) AS applied WHERE at > %s"""
_HAS_TABLE = (
    "SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'kainite_applied'"
)


class DatabaseReading(Protocol):
    """A connection that reads."""

    def execute(self, sql: str) -> Rows:
        """Returns the rows of a query."""

    def applied(self, after_us: int) -> Rows:
        """Returns the units that were applied after a moment, microseconds since the epoch, and when each was."""


def is_mariadb(url: str) -> bool:
    """Tells whether an address is MariaDB's."""
    return url.startswith("mariadb:")


@contextmanager
def reading(url: str) -> Iterator[DatabaseReading]:
    """Opens a connection that reads.

    Raises:
        DemoError: the database cannot be read, now or within the ``with``.
    """
    with _in_mariadb(url) if is_mariadb(url) else _in_postgresql(url) as opened:
        yield opened


def count_of(url: str, table: str) -> int:
    """Returns the number of a table's rows."""
    with reading(url) as opened:
        [(count,)] = opened.execute(f"SELECT count(*) FROM {table}")
    return int(count)


@contextmanager
def _in_postgresql(url: str) -> Iterator[DatabaseReading]:
    try:
        with psycopg.connect(url) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield _PostgresReading(connection)
    except psycopg.Error as error:
        raise DemoError(f"the target cannot be read: {str(error).strip()}") from error


@contextmanager
def _in_mariadb(url: str) -> Iterator[DatabaseReading]:
    import pymysql

    from kainite.targets.mariadb.connection import connect

    try:
        with closing(connect(url)) as connection:
            yield _MariadbReading(connection)
    except pymysql.Error as error:
        raise DemoError(f"the target cannot be read: {error.args[-1]}") from error


class _PostgresReading:
    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str) -> Rows:
        with self._connection.transaction():
            return self._connection.execute(sql.encode()).fetchall()

    def applied(self, after_us: int) -> Rows:
        with self._connection.transaction():
            if self._connection.execute("SELECT to_regclass('kainite_applied')").fetchone() == (None,):
                return []
            return self._connection.execute(_APPLIED, [after_us]).fetchall()


class _MariadbReading:
    """Reads by single statements, each of which is one snapshot."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str) -> Rows:
        return self._rows(sql)

    def applied(self, after_us: int) -> Rows:
        return self._rows(_APPLIED_IN_MARIADB, [after_us]) if self._rows(_HAS_TABLE) else []

    def _rows(self, sql: str, values: Sequence[object] | None = None) -> Rows:
        with self._connection.cursor() as cursor:
            cursor.execute(sql, values)
            return list(cursor.fetchall())
