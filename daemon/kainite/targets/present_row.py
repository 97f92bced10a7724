"""The row that the target has under a delta's key now: asked when a person looks at a unit that was refused.

Each kind of target that can be asked names its reader in :mod:`kainite.settings.kinds.target_kinds`. A look locks
nothing, and gives up after :data:`LIMIT_S`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kainite.base.errors import SettingsError
from kainite.settings.kinds.target_kinds import kind_of

LIMIT_S: Final = 5
"""Seconds after which the target gives a look up."""


@dataclass(frozen=True, slots=True)
class RowAsked:
    """A row that is looked for.

    Attributes:
        table: the table's name as deltas have it.
        key: the values that identify the row, by column.
    """

    table: str
    key: Mapping[str, Any]


PresentRow = Mapping[str, str | None]
"""A row's values as texts, by column, in the table's order; None stands for NULL."""

PresentRowReader = Callable[[str, Sequence[RowAsked]], tuple[PresentRow | None, ...]]
"""Asks the target at an address for rows; raises TargetUnavailableError, where it does not answer or refuses to."""


def read_target_rows(target: str, asked: Sequence[RowAsked]) -> tuple[PresentRow | None, ...]:
    """Returns each row as the target has it now; None where it has none, or more than one, or no such table or column.

    Args:
        target: the target's address, as the settings have it.
        asked: the rows.

    Raises:
        SettingsError: this kind of target cannot be asked.
        MissingExtraError: its driver is not installed.
        TargetUnavailableError: it does not answer, or refuses to.
    """
    kind = kind_of(target)
    reader: PresentRowReader = kind.part(kind.present_rows, "cannot be asked for rows")
    return reader(target, asked)


def rows_of_deltas(deltas: Sequence[Mapping[str, Any]]) -> list[RowAsked | None]:
    """Returns the row that each delta identifies; None for one that names no key."""
    return [
        RowAsked(delta["table"], key) if (key := delta.get("key")) and isinstance(delta.get("table"), str) else None
        for delta in deltas
    ]


def rows_beside(target: str | None, deltas: Sequence[Mapping[str, Any]]) -> list[PresentRow | None]:
    """Returns the target's row of now for each delta; None where there is none, or no key to look for.

    Args:
        target: the target's address; None for none.
        deltas: the deltas.

    Raises:
        SettingsError: no target is set, or its kind cannot be asked.
        MissingExtraError, TargetUnavailableError: as of :func:`read_target_rows`.
    """
    if target is None:
        raise SettingsError("there is no target to ask: set target")
    asked = rows_of_deltas(deltas)
    found = iter(read_target_rows(target, [one for one in asked if one is not None]))
    return [None if one is None else next(found) for one in asked]


def names_of(table: str) -> list[tuple[str, ...]]:
    """Returns what a table's name may mean: a name by itself, or behind a schema, whatever dots are in either."""
    cuts = [place for place, letter in enumerate(table) if letter == "." and 0 < place < len(table) - 1]
    return [(table,), *((table[:place], table[place + 1 :]) for place in cuts)]


def as_text(value: Any) -> str:
    """Returns a key's value as a database reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
