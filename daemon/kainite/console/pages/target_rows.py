"""A unit's deltas beside the rows that their targets have now: asked of the targets when somebody opens the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from kainite.base.errors import KainiteError
from kainite.console.pages.frame import PageFrame
from kainite.console.pages.unit import MOST_DELTAS, FoundUnit, found_unit
from kainite.console.unit_view import DeltaView, beside_target
from kainite.log.state.target_parts import TargetPart
from kainite.settings import RowDisplay
from kainite.targets.rows_by_target import rows_in_targets


@dataclass(frozen=True, slots=True)
class BesideTarget:
    """Deltas beside the rows of one target.

    Attributes:
        target: its name; empty for an only target.
        part: what the target has of the unit; None for an only target, and where nothing tells.
        deltas: the deltas of its tables.
        problem: why its rows are not shown; empty where they are.
    """

    target: str
    part: TargetPart | None
    deltas: Sequence[DeltaView]
    problem: str


def target_rows(frame: PageFrame, request: Request) -> Response:
    """Shows what each delta writes beside the row that the target has under its key."""
    found = found_unit(frame, request)
    problem, views = "", list[BesideTarget]()
    if frame.settings.shown_values is RowDisplay.FULL:
        try:
            views = _views(found)
        except KainiteError as error:
            problem = str(error)
    else:
        problem = "values are not shown here (consoleValues)"
    return frame.page(request, "target_rows.html", found.application, row=found.row, targets=views, problem=problem)


def _views(found: FoundUnit) -> list[BesideTarget]:
    deltas = found.deltas(MOST_DELTAS)[:MOST_DELTAS]
    return [
        BesideTarget(
            each.target,
            found.parts.get(each.target),
            [] if each.problem else beside_target([deltas[place] for place in each.places], each.rows),
            each.problem,
        )
        for each in rows_in_targets(found.application.settings, deltas)
    ]
