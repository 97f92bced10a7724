"""Looks whether Kainite's own tables in a target have the columns that this version reads and writes. Pure.

``CREATE TABLE IF NOT EXISTS`` leaves a table alone that an earlier version has made. What such a table lacks would show
as an error in the middle of the work, so it is said before anything is begun, with the statements that mend it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from kainite.base.errors import CatalogueError

_TABLE: Final = re.compile(r"\s*CREATE TABLE IF NOT EXISTS (\w+) \((.*)\)\s*(?:ENGINE .*)?", re.DOTALL)
_COLUMN: Final = re.compile(r"^\s*([a-z_]+) (.+?),?\s*$")


def check_columns(created: Iterable[str], columns_of: Callable[[str], Collection[str]]) -> None:
    """Looks at tables that are there.

    Args:
        created: the statements by which the tables are made, a column a line.
        columns_of: returns the columns that a table of the target has; none of one that is not there.

    Raises:
        CatalogueError: a table lacks a column; the message has the statements that add it.
    """
    if missing := [one for statement in created for one in _missing(statement, columns_of)]:
        raise CatalogueError(
            "tables of Kainite's in the target were made by an earlier version, and lack columns. With all commands of"
            f" Kainite stopped: {'; '.join(missing)}"
        )


def _missing(statement: str, columns_of: Callable[[str], Collection[str]]) -> Iterator[str]:
    """Yields the statements that add what a table lacks."""
    made = _TABLE.fullmatch(statement)
    if made is None:
        return
    there = columns_of(made[1])
    for line in made[2].strip().splitlines():
        column = _COLUMN.match(line)
        if column is not None and there and column[1] not in there:
            yield f"ALTER TABLE {made[1]} ADD COLUMN {column[1]} {column[2]}"
