"""The rows that the target has now, beside the deltas of a unit, for ``kainite uow show --target``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from kainite.base.errors import SettingsError
from kainite.settings import Settings
from kainite.targets.present_row import PresentRow, read_present_rows, rows_of_deltas

MOST_LOOKED_FOR: Final = 100
"""How many deltas of a unit are looked up."""


def rows_beside(settings: Settings, deltas: Sequence[Mapping[str, Any]]) -> list[PresentRow | None]:
    """Returns, for each of the first deltas, the target's row of now; None where there is none, or no key to look for.

    Raises:
        SettingsError: no target is set, or its kind cannot be asked.
        TargetUnavailableError: the target does not answer.
    """
    if settings.apply.target is None:
        raise SettingsError("there is no target to ask: set target")
    asked = rows_of_deltas(deltas[:MOST_LOOKED_FOR])
    found = iter(read_present_rows(settings.apply.target, [one for one in asked if one is not None]))
    return [None if one is None else next(found) for one in asked]


def shown(row: PresentRow | None) -> str:
    """Returns a row of the target as a line below its delta."""
    return f"    in the target: {'no such row' if row is None else orjson.dumps(dict(row)).decode()}"
