"""Cuts a table into ranges of pages, which several sessions read under one snapshot. Pure.

A row that a snapshot sees stays where it is as long as nobody writes the table anew, which the snapshot's holder
prevents (:mod:`kainite.capture.postgresql.consistent_snapshot`). So ranges of ``ctid`` that follow each other without a
gap, the last one open, have each row exactly once. PostgreSQL 14 and later read such a range alone (*Tid Range Scan*);
before, each range reads the whole table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from kainite.replicate.tables import TablePart

LEAST_PAGES: Final = 1024
"""Pages of a range at least, if the part has so many: 8 MiB, below which the commit outweighs the rows."""

MOST_PAGES: Final = 16 * 1024
"""Pages of a range at most: 128 MiB, which a task that is killed repeats."""

RANGES_PER_TASK: Final = 4
"""Ranges that each parallel task gets of a large table, so that all end together."""


class RowRange(Protocol):
    """Some rows of a table."""

    @property
    def part(self) -> str:
        """Returns the table that holds them, as its server names it."""

    @property
    def condition(self) -> str:
        """Returns the condition on them, as SQL."""


@dataclass(frozen=True, slots=True)
class PageRange:
    """Pages of a table that holds rows itself.

    Attributes:
        part: the table, quoted and with its schema.
        first: the first page.
        end: the page behind the last one; None: to the end of the table.
    """

    part: str
    first: int
    end: int | None

    @property
    def condition(self) -> str:
        """Returns the condition on ``ctid``, as SQL."""
        above = f"ctid >= '({self.first},0)'::tid"
        return above if self.end is None else f"{above} AND ctid < '({self.end},0)'::tid"


class Parted(Protocol):
    """A table whose rows are in parts."""

    @property
    def parts(self) -> tuple[TablePart, ...]:
        """Returns where its rows are."""


def pages_of_a_range(tables: Iterable[Parted], parallelism: int) -> int:
    """Returns how many pages a range has, for tables that ``parallelism`` tasks read at once."""
    pages = sum(part.pages for table in tables for part in table.parts)
    return min(max(pages // (parallelism * RANGES_PER_TASK), LEAST_PAGES), MOST_PAGES)


def page_ranges(part: TablePart, pages: int) -> Iterator[PageRange]:
    """Yields ranges of ``pages`` pages that together are the part; one at least, and the last one open."""
    starts = range(0, max(part.pages, 1), pages)
    for first in starts:
        yield PageRange(part.sql, first, None if first == starts[-1] else first + pages)
