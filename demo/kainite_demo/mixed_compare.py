"""Compares tables of two databases of which one is MariaDB, row by row: values are spelled alike first.

A text keeps no spaces at its end: PostgreSQL fills up what is CHAR, and MariaDB cuts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from itertools import zip_longest
from typing import Any, TypeAlias

import psycopg

from kainite.base.errors import DemoError
from kainite.uow.catalogue.reflection import reflect
from kainite_demo.reading import is_mariadb

_AT_A_TIME = 20_000

Row: TypeAlias = tuple[str | None, ...]


def compare_alike(source: str, target: str, table: str) -> int:
    """Compares a table; returns the number of its rows.

    Raises:
        DemoError: it differs; the message shows the first rows that do.
    """
    described = reflect(source).tables[table]
    names = sorted(described.columns)
    query = f"SELECT {', '.join(names)} FROM {table} ORDER BY {', '.join(described.primary_key or names)}"
    count = 0
    with _rows(source, query) as left, _rows(target, query) as right:
        for expected, found in zip_longest(map(_spelled, left), map(_spelled, right)):
            if expected != found:
                raise DemoError(f"{table} differs: the source has {_shown(expected)}, the target {_shown(found)}")
            count += 1
    return count


@contextmanager
def _rows(url: str, query: str) -> Iterator[Iterable[Sequence[Any]]]:
    """Gives the rows of a query, which come as they are read."""
    if not is_mariadb(url):
        with psycopg.connect(url) as postgres, postgres.cursor("kainite_demo") as read:
            read.itersize = _AT_A_TIME
            read.execute(query.encode())
            yield read
        return
    from pymysql.cursors import SSCursor

    from kainite.targets.mariadb.connection import connect

    with closing(connect(url)) as connection, connection.cursor(SSCursor) as cursor:
        cursor.execute(query)
        yield cursor


def _spelled(row: Sequence[Any]) -> Row:
    return tuple(_text(value) for value in row)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.isoformat(" ", "microseconds") if isinstance(value, datetime) else str(value).rstrip(" ")


def _shown(row: Row | None) -> str:
    return "no more rows" if row is None else repr(list(row))
