"""Looks whether Kainite's own tables in a target have the columns that this version reads and writes.

``CREATE TABLE IF NOT EXISTS`` leaves a table alone that an earlier version has made. What such a table lacks would show
as an error in the middle of the work, so it is said before anything is begun, with the statements that mend it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import psycopg

from kainite.base.errors import CatalogueError

_TABLE: Final = re.compile(r"\s*CREATE TABLE IF NOT EXISTS (\w+) \((.*)\)\s*", re.DOTALL)
_COLUMN: Final = re.compile(r"^\s*([a-z_]+) (.+?),?\s*$")
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
    if missing := [one for statement in created for one in _missing(connection, statement)]:
        raise CatalogueError(
            "tables of Kainite's in the target were made by an earlier version, and lack columns. With all commands of"
            f" Kainite stopped: {'; '.join(missing)}"
        )


def _missing(connection: psycopg.Connection, statement: str) -> Iterator[str]:
    """Yields the statements that add what a table lacks."""
    made = _TABLE.fullmatch(statement)
    if made is None:
        return
    there = {name for (name,) in connection.execute(_COLUMNS, (made[1],))}
    for line in made[2].strip().splitlines():
        column = _COLUMN.match(line)
        if column is not None and column[1] not in there:
            yield f"ALTER TABLE {made[1]} ADD COLUMN {column[1]} {column[2]}"
