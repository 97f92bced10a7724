"""The log with the settings, and what people did."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from kainite.base.errors import KainiteError
from kainite.console.pages.frame import PageFrame
from kainite.console.settings_view import settings_view


def log(frame: PageFrame, request: Request) -> Response:
    """Shows the log's owner and marks, and the settings in force."""
    application = frame.application(request)
    verdict = application.verdict()
    reading = application.read_units()
    with application.lock:
        head = application.units.head
        held = len(application.units)
    return frame.page(
        request, "log.html", application, verdict=verdict, reading=reading, head=head, held=held,
        settings=settings_view(application.file, application.settings),
    )  # fmt: skip


def history(frame: PageFrame, request: Request) -> Response:
    """Shows what people did."""
    application = frame.application(request)
    problem, records = "", []
    try:
        records = application.operations.history() if application.has_log else []
    except KainiteError as error:
        problem = str(error)
    return frame.page(request, "history.html", application, problem=problem, records=records[::-1])
