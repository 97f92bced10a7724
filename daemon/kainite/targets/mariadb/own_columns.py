"""Asks MariaDB and MySQL which columns Kainite's own tables have (:mod:`kainite.targets.own_columns`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pymysql

from kainite.targets.mariadb.rows import rows_of
from kainite.targets.own_columns import check_columns

_COLUMNS: Final = """
    SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = %s"""


def check_mariadb_columns(connection: pymysql.connections.Connection, created: Iterable[str]) -> None:
    """Looks at tables that are there.

    Args:
        connection: a session with the target.
        created: the statements by which the tables are made, a column a line.

    Raises:
        CatalogueError: a table lacks a column; the message has the statements that add it.
        pymysql.Error: the server does not answer.
    """
    check_columns(created, lambda table: {name for (name,) in rows_of(connection, _COLUMNS, table)})
