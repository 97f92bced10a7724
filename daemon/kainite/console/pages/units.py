"""The list of units, by a filter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kainite.console.moments import moment_ms
from kainite.console.pages.frame import PageFrame
from kainite.console.paging import page_number
from kainite.log.format.entry import UnitStatus
from kainite.log.state.unit_filter import UnitFilter
from kainite.log.views.unit_search import all_tables, find
from kainite.log.views.unit_table import COLLECTING

PAGE: Final = 50
"""Units on a page."""

STATUSES: Final = (
    COLLECTING, UnitStatus.IN_PROGRESS, UnitStatus.BLOCKED, UnitStatus.FAILED, UnitStatus.DISCARDING,
    UnitStatus.COMMITTED, UnitStatus.DISCARDED,
)  # fmt: skip


def units(frame: PageFrame, request: Request) -> Response:
    """Lists the units that a filter finds."""
    application = frame.application(request)
    reading = application.read_units()
    wanted, page = filter_of(request.query_params), page_number(request.query_params.get("page"))
    targets = [target.name for target in application.targets if application.has_parts]
    target = request.query_params.get("target", "")
    target = target if target in targets else ""
    name = request.query_params.get("name", "").strip()
    with application.lock:
        found = find(application.units, wanted, (page - 1) * PAGE, PAGE, target)
        tables = all_tables(application.units)
        by_id = application.units.unit(int(name)) if name.isdecimal() and len(name) < 19 else None
    return frame.page(
        request, "units.html", application, reading=reading, wanted=wanted, found=found, by_id=by_id, tables=tables,
        page=page, per_page=PAGE, statuses=STATUSES, query=request.query_params, targets=targets, target=target,
    )  # fmt: skip


def filter_of(query: Mapping[str, str]) -> UnitFilter:
    """Returns the filter that a query of the units' page asks for; what is no status and no time is passed over.

    A name without ``*`` and ``?`` is a piece of a name.
    """
    status, table, name, cause = (query.get(field, "").strip() for field in ("status", "table", "name", "cause"))
    piece = name.replace("[", "[[]")
    return UnitFilter(
        (status,) if status in STATUSES else (),
        (table,) if table else (),
        () if not name else (piece,) if "*" in name or "?" in name else (f"*{piece}*",),
        (cause,) if cause else (),
        moment_ms(query.get("since", "")),
        moment_ms(query.get("until", "")),
    )
