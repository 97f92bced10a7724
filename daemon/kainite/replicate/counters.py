"""Says what a source gives next for columns that count by themselves: sequences, AUTO_INCREMENT. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kainite.replicate.tables import TableName


@dataclass(frozen=True, slots=True)
class CountingColumn:
    """A column of the source that counts, and the target's table.

    Attributes:
        column: the source's table and column, as they are shown.
        place: the target's table.
        name: the column's own name.
        next: the value that the source gives next.
    """

    column: str
    place: TableName
    name: str
    next: int


@dataclass(frozen=True, slots=True)
class SourceCounters:
    """What of a source counts.

    Attributes:
        columns: the columns of tables that the target has.
        others: sequences that no such column has, or that count otherwise than upwards.
        hidden: sequences, as SQL, that Kainite's role may not read.
    """

    columns: tuple[CountingColumn, ...]
    others: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
