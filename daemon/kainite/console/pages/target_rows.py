"""A unit's deltas beside the rows that the target has now: asked of the target when somebody opens the page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from kainite.base.errors import KainiteError
from kainite.console.pages.frame import PageFrame
from kainite.console.pages.unit import MOST_DELTAS, FoundUnit, found_unit
from kainite.console.unit_view import DeltaView, beside_target
from kainite.settings import RowDisplay
from kainite.targets.present_row import rows_beside


def target_rows(frame: PageFrame, request: Request) -> Response:
    """Shows what each delta writes beside the row that the target has under its key."""
    found = found_unit(frame, request)
    problem, views = "", list[DeltaView]()
    if frame.settings.shown_values is RowDisplay.FULL:
        try:
            views = _views(found)
        except KainiteError as error:
            problem = str(error)
    else:
        problem = "values are not shown here (consoleValues)"
    return frame.page(request, "target_rows.html", found.application, row=found.row, deltas=views, problem=problem)


def _views(found: FoundUnit) -> list[DeltaView]:
    deltas = found.deltas(MOST_DELTAS)[:MOST_DELTAS]
    return beside_target(deltas, rows_beside(found.application.settings.apply.target, deltas))
