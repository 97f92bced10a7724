"""What targets have of a unit: the rows beside its deltas (``kainite uow show --target``), and its status in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kainite.base.redaction import RowValues
from kainite.log.state.target_parts import TargetPart
from kainite.settings import Settings
from kainite.targets.present_row import PresentRow, rows_beside
from kainite.targets.rows_by_target import rows_in_targets

MOST_LOOKED_FOR: Final = 100
"""How many deltas of a unit are looked up."""


@dataclass(frozen=True, slots=True)
class RowsBeside:
    """The target's row beside each of some deltas.

    Attributes:
        rows: the rows; None where there is none.
        targets: of several targets the one that has each row; empty for an only target.
        problems: why a target was not asked, by its name.
    """

    rows: Sequence[PresentRow | None] = ()
    targets: Sequence[str] = ()
    problems: Mapping[str, str] | None = None

    def line(self, place: int) -> str:
        """Returns a row as a line below its delta."""
        name = self.targets[place] if self.targets else ""
        where = f"in target {name}" if name else "in the target"
        problem = (self.problems or {}).get(name)
        row = self.rows[place]
        told = problem or ("no such row" if row is None else orjson.dumps(dict(row)).decode())
        return f"    {where}: {'not shown: ' if problem else ''}{told}"

    def as_json(self) -> dict[str, Any]:
        """Returns the rows; of several targets, whose they are, and which were not asked."""
        found: dict[str, Any] = {"target": RowValues([row and dict(row) for row in self.rows])}
        several = {"target_names": list(self.targets), "target_problems": dict(self.problems or {})}
        return found | (several if self.targets else {})


def look_beside(settings: Settings, deltas: Sequence[Mapping[str, Any]]) -> RowsBeside:
    """Returns the rows that the targets have now beside deltas.

    Raises:
        KainiteError: the only target cannot be asked; of several, those that can be are told.
    """
    if not settings.of_targets:
        return RowsBeside(rows_beside(settings.apply.target, deltas))
    rows: list[PresentRow | None] = [None] * len(deltas)
    names = [""] * len(deltas)
    asked = rows_in_targets(settings, deltas)
    for each in asked:
        for place, row in zip(each.places, each.rows or (None,) * len(each.places), strict=True):
            rows[place], names[place] = row, each.target
    return RowsBeside(rows, names, {each.target: each.problem for each in asked if each.problem})


def part_lines(parts: Mapping[str, TargetPart]) -> list[str]:
    """Returns what each of several targets has of a unit, a line each."""
    return [
        f"in target {name}: {part.status.value}{f': {part.cause}' if part.cause else ''}"
        for name, part in parts.items()
    ]
