"""Options that select units of work in the log, the same in every command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import click

from kainite.cli.times import TIME, epoch_ms_option
from kainite.log.state.unit_filter import UnitFilter

F = TypeVar("F", bound=Callable[..., Any])


def unit_filter(statuses: Sequence[str]) -> Callable[[F], F]:
    """Adds options that select units, given to the command as ``wanted``.

    Args:
        statuses: the statuses that units may be selected by.
    """

    def add(function: F) -> F:
        @wraps(function)
        def command(
            *args: Any, statuses: tuple[str, ...], tables: tuple[str, ...], like: tuple[str, ...],
            causes: tuple[str, ...], since: int | None, until: int | None, **kwargs: Any,
        ) -> Any:  # fmt: skip
            wanted = UnitFilter(statuses, tables, like, causes, since, until)
            return function(*args, wanted=wanted, **kwargs)

        for option in (
            click.option("--until", callback=epoch_ms_option, metavar=TIME, help="Only units that arrived before."),
            click.option("--since", callback=epoch_ms_option, metavar=TIME,
                         help="Only units that arrived then or later: ISO 8601 (UTC), or epoch seconds."),
            click.option("--like", "like", multiple=True, metavar="PATTERN",
                         help="Only units with such a name: * and ? stand for any characters, and one."),
            click.option("--cause", "causes", multiple=True, metavar="TEXT", help="Only units whose cause has this."),
            click.option("--table", "tables", multiple=True, metavar="TABLE", help="Only units on this table."),
            click.option("--status", "statuses", multiple=True, type=click.Choice([str(one) for one in statuses]),
                         help="Only units of this status."),
        ):  # fmt: skip
            command = option(command)
        return command  # type: ignore[return-value]

    return add
