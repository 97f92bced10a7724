"""The rows that a unit's deltas meet now, each asked of the target that has the delta's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kainite.base.errors import KainiteError
from kainite.settings import Settings
from kainite.settings.targets import assignment_of, of_target
from kainite.targets.present_row import PresentRow, rows_beside


@dataclass(frozen=True, slots=True)
class RowsInTarget:
    """What one target has beside deltas.

    Attributes:
        target: its name; empty for an only target.
        places: the places of its deltas among those that were asked about.
        rows: for each of them the row, or None where there is none; nothing where the target was not asked.
        problem: why it was not asked; empty where it was.
    """

    target: str
    places: tuple[int, ...]
    rows: tuple[PresentRow | None, ...] = ()
    problem: str = ""


def rows_in_targets(settings: Settings, deltas: Sequence[Mapping[str, Any]]) -> list[RowsInTarget]:
    """Returns the targets' rows beside deltas; one target that is not reached keeps none of the others.

    Args:
        settings: the application's.
        deltas: the deltas.
    """
    return [_asked(settings, name, places, deltas) for name, places in _places(settings, deltas).items()]


def _places(settings: Settings, deltas: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, ...]]:
    assignment = assignment_of(settings.of_targets)
    if not assignment:
        return {"": tuple(range(len(deltas)))}
    of: dict[str, list[int]] = {name: [] for name in assignment.names}
    for place, delta in enumerate(deltas):
        of[assignment.target_of(str(delta.get("table"))) or assignment.names[0]].append(place)
    return {name: tuple(places) for name, places in of.items() if places}


def _asked(settings: Settings, name: str, places: tuple[int, ...], deltas: Sequence[Mapping[str, Any]]) -> RowsInTarget:
    try:
        target = of_target(settings, name).apply.target
        return RowsInTarget(name, places, tuple(rows_beside(target, [deltas[place] for place in places])))
    except KainiteError as error:
        return RowsInTarget(name, places, problem=str(error))
