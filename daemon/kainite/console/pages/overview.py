"""The overview, and the figures of its charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kainite.base.clock import epoch_ms
from kainite.console.figures import FigureSlot
from kainite.console.observed import ObservedApplication
from kainite.console.pages.frame import PageFrame
from kainite.console.rendering import at
from kainite.console.target_view import TargetsView, targets_view
from kainite.console.way import stations
from kainite.verdict.judging import ApplicationVerdict

_TABLE_STEPS: Final = 12


def overview(frame: PageFrame, request: Request) -> Response:
    """Shows the way of the data, the checks, the lag and the charts."""
    application = frame.application(request)
    verdict = application.verdict()
    reading = application.read_units()
    with application.lock:
        rate = application.figures.rate(epoch_ms())
        slots = application.figures.series(epoch_ms())
        targets = _targets(application, verdict)
    return frame.page(
        request, "overview.html", application, verdict=verdict, reading=reading, targets=targets,
        requests=application.requests() if application.has_log else None,
        stations=stations(verdict, rate, application.target_kind), steps=_steps(slots),
    )  # fmt: skip


def _targets(application: ObservedApplication, verdict: ApplicationVerdict) -> TargetsView | None:
    """Returns how several targets stand; None where a unit has one status for all."""
    if not application.has_parts:
        return None
    units, now = application.units, verdict.facts.now_ms
    kinds = {target.name: target.kind for target in application.targets}
    return targets_view(kinds, units.standings(), verdict, lambda unit: units.row(unit).age_s(now))


def figures(frame: PageFrame, request: Request) -> Response:
    """Shows what the charts show, as a table."""
    application = frame.application(request)
    application.read_units()
    with application.lock:
        slots = application.figures.series(epoch_ms())
    return frame.page(request, "figures.html", application, steps=_steps(slots))


def figures_json(frame: PageFrame, request: Request) -> Response:
    """Gives the charts their figures."""
    application = frame.application(request)
    application.verdict()
    application.read_units()
    with application.lock:
        slots = application.figures.series(epoch_ms())
    names = ("at", "rate", "p50", "p99", "waiting", "failed")
    return JSONResponse({name: [getattr(slot, name) for slot in slots] for name in names})


def _steps(slots: Sequence[FigureSlot]) -> list[dict[str, Any]]:
    """Returns the slots' figures in twelve steps, the latest first, for the table beside the charts."""
    size = len(slots) // _TABLE_STEPS
    steps = []
    for begin in range(len(slots) - size, -1, -size):
        part = slots[begin : begin + size]
        steps.append(
            {
                "at": at(part[0].at * 1000),
                "rate": sum(slot.rate for slot in part) / size,
                "p50": _highest(slot.p50 for slot in part),
                "p99": _highest(slot.p99 for slot in part),
                "waiting": _highest(slot.waiting for slot in part),
                "failed": _highest(slot.failed for slot in part),
            }
        )
    return steps


def _highest(figures: Iterable[float | None]) -> float | None:
    return max((figure for figure in figures if figure is not None), default=None)
