"""What the apply job does."""

from __future__ import annotations

from itertools import islice
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kainite.console.pages.frame import PageFrame
from kainite.verdict.judging import ApplicationVerdict

MOST_STILL: Final = 50
"""Units that are shown of those that stand still."""


def apply(frame: PageFrame, request: Request) -> Response:
    """Shows micro-batches, lanes, and units that wait."""
    application = frame.application(request)
    verdict = application.verdict()
    reading = application.read_units()
    with application.lock:
        batches = application.batches.latest()
        still = (each for each in application.units.dispatched() if each.cause is not None and not each.resolved)
        waiting = [application.units.row(unit) for unit in islice(still, MOST_STILL)]
    return frame.page(
        request,
        "apply.html",
        application,
        paused=_paused(verdict),
        verdict=verdict,
        reading=reading,
        batches=batches,
        waiting=waiting,
    )


def _paused(verdict: ApplicationVerdict) -> str:
    log = verdict.facts.log
    return log.summary.paused if log is not None and log.summary is not None else ""
