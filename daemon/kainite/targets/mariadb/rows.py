"""Asks MariaDB and MySQL for rows, also of tables that need not be there, and tells the server's errors in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pymysql

from kainite.base.errors import TargetUnavailableError
from kainite.base.redaction import redacted

NO_TABLE: Final = 1146
"""The server's code for a table that is not there."""


def rows_of(connection: pymysql.connections.Connection, query: str, *values: object) -> list[Any]:
    """Returns the rows of a query.

    Raises:
        pymysql.Error: the server refused, or is away.
    """
    with connection.cursor() as cursor:
        cursor.execute(query, values or None)
        return list(cursor.fetchall())


def rows_if_there(connection: pymysql.connections.Connection, query: str, *values: object) -> list[Any]:
    """Returns the rows of a query; none where its table is missing. Raises as :func:`rows_of`."""
    try:
        return rows_of(connection, query, *values)
    except pymysql.Error as error:
        if error.args[0] != NO_TABLE:
            raise
        return []


@contextmanager
def as_target_error() -> Iterator[None]:
    """Makes what the driver raises about a target a TargetUnavailableError, in one line."""
    try:
        yield
    except pymysql.Error as error:
        raise TargetUnavailableError(f"the target: {line_of(error)}") from None


def line_of(error: pymysql.Error) -> str:
    """Returns an error of the server in one line."""
    return redacted(" ".join(str(error.args[-1] if error.args else error).split()))
