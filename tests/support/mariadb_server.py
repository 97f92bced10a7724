"""Scripts on a MariaDB server (:mod:`kainite_demo.mariadb_server`), whose SQL wants some things otherwise than
PostgreSQL's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pymysql

from kainite.targets.mariadb.connection import connect
from kainite_demo.mariadb_server import mariadb
from support.mysql_server import IS_MYSQL, mysql

_COLUMNS: Final = re.compile(r"\bREFERENCES (\w+)(?!\s*\(|\w|\.)")

# Not innodb_trx: it shows an old state as long as somebody asks ten times a second.
WAITING_FOR_ROWS: Final = (
    "SELECT CAST(variable_value AS SIGNED)"
    f" FROM {'performance_schema' if IS_MYSQL else 'information_schema'}.global_status"
    " WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'"
)
"""Asks how many sessions wait for a lock of a row."""


@contextmanager
def running(folder: Path, *options: str) -> Iterator[str]:
    """Runs a server, with additions to its command line; yields the address of its own database."""
    with (mysql if IS_MYSQL else mariadb)(folder, *options) as url:
        yield url


def run_script(url: str, script: str) -> None:
    """Executes a script of the tests' common SQL (:func:`in_mariadb`)."""
    with closing(_ansi(url)) as connection, connection.cursor() as cursor:
        cursor.execute(in_mariadb(script))
        while cursor.nextset():
            pass


def drop_database(url: str, name: str) -> None:
    """Drops a database, and ends sessions that a failed test has left in it: their locks would keep it for ever."""
    left = rows_of(url, f"SELECT id FROM information_schema.processlist WHERE db = '{name}'")
    for (session,) in left:
        with suppress(pymysql.MySQLError):  # it may have ended by itself
            run_script(url, f"KILL {session}")
    run_script(url, f"DROP DATABASE {name}")


def rows_of(url: str, query: str) -> list[tuple[Any, ...]]:
    """Returns the rows of a query."""
    with closing(_ansi(url)) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def in_mariadb(script: str) -> str:
    """Returns a script in which each foreign key names the columns of its parent, which MariaDB asks for."""
    keys = dict(re.findall(r"CREATE TABLE (\w+) \(\s*(\w+)[^,]*? PRIMARY KEY", script))
    keys |= dict(re.findall(r"CREATE TABLE (\w+) \([^;]*?PRIMARY KEY \(([^)]*)\)", script))
    return _COLUMNS.sub(lambda found: f"REFERENCES {found[1]} ({keys[found[1]]})", script)


def _ansi(url: str) -> pymysql.connections.Connection:
    connection = connect(url)
    connection.query("SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')")
    return connection
