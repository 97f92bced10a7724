"""Asks PostgreSQL which columns Kainite's own tables have (:mod:`kainite.targets.own_columns`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import psycopg

from kainite.targets.own_columns import check_columns

_COLUMNS: Final = """
    SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"""


def check_own_columns(connection: psycopg.Connection, created: Iterable[str]) -> None:
    """Looks at tables that are there.

    Args:
        connection: a session with the target.
        created: the statements by which the tables are made, a column a line.

    Raises:
        CatalogueError: a table lacks a column; the message has the statements that add it.
        psycopg.Error: the server does not answer.
    """
    check_columns(created, lambda table: {name for (name,) in connection.execute(_COLUMNS, (table,))})
