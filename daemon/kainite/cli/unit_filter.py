"""Options that select units of work in the log, the same in every command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from kainite.log.views.unit_table import LogRow

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class UnitFilter:
    """A filter of units. A unit must fit one value of each kind of which values are given.

    Attributes:
        statuses: the units' statuses.
        tables: tables that the unit changes.
        causes: pieces of the cause's text; upper and lower case do not differ.
    """

    statuses: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.statuses or self.tables or self.causes)

    def takes(self, row: LogRow) -> bool:
        """Tells whether the filter lets a unit pass."""
        cause = (row.cause or "").lower()
        return (
            (not self.statuses or row.status in self.statuses)
            and (not self.tables or not row.tables.isdisjoint(self.tables))
            and (not self.causes or any(piece.lower() in cause for piece in self.causes))
        )


def unit_filter(statuses: Sequence[str]) -> Callable[[F], F]:
    """Adds ``--status``, ``--table`` and ``--cause``, given to the command as ``wanted``."""

    def add(function: F) -> F:
        @wraps(function)
        def command(
            *args: Any, statuses: tuple[str, ...], tables: tuple[str, ...], causes: tuple[str, ...], **kwargs: Any
        ) -> Any:
            return function(*args, wanted=UnitFilter(statuses, tables, causes), **kwargs)

        for option in (
            click.option("--cause", "causes", multiple=True, metavar="TEXT", help="Only units whose cause has this."),
            click.option("--table", "tables", multiple=True, metavar="TABLE", help="Only units on this table."),
            click.option("--status", "statuses", multiple=True, type=click.Choice([str(one) for one in statuses]),
                         help="Only units of this status."),
        ):  # fmt: skip
            command = option(command)
        return command  # type: ignore[return-value]

    return add
