"""The log with the settings, and what people did."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from kainite.base.clock import epoch_ms
from kainite.base.errors import KainiteError
from kainite.console.observed import ObservedApplication
from kainite.console.pages.frame import PageFrame
from kainite.console.settings_view import settings_view
from kainite.settings import UowOrder
from kainite.verdict.judging import ApplicationVerdict


def log(frame: PageFrame, request: Request) -> Response:
    """Shows the log's owner and marks, and the settings in force."""
    application = frame.application(request)
    verdict = application.verdict()
    reading = application.read_units()
    with application.lock:
        head = application.units.head
        held = len(application.units)
        numbers = _numbers(application, _held(verdict))
    return frame.page(
        request, "log.html", application, verdict=verdict, reading=reading, head=head, held=held, numbers=numbers,
        settings=settings_view(application.file, application.settings), waiting=_waiting(application),
    )  # fmt: skip


def _waiting(application: ObservedApplication) -> str:
    found = application.requests() if application.has_log else None
    return "not known" if found is None else found.in_words(epoch_ms())


def _held(verdict: ApplicationVerdict) -> str:
    log = verdict.facts.log
    return log.summary.held if log is not None and log.summary is not None else ""


@dataclass(frozen=True, slots=True)
class NumbersBehind:
    """The units that are collected and wait for an earlier number (``uowOrder=dense``).

    Attributes:
        count: how many there are.
        first: the lowest of their numbers; None without one.
        held: what is awaited, in words; empty where nothing is, or nothing tells.
    """

    count: int
    first: int | None
    held: str

    @property
    def suggested(self) -> str:
        """Returns the last number that may be given up without giving up one that a unit has."""
        return "" if self.first is None else str(self.first - 1)


def _numbers(application: ObservedApplication, held: str) -> NumbersBehind | None:
    if application.settings.uow.order is not UowOrder.DENSE or not application.has_log:
        return None
    numbers = [unit.number for unit in application.units.open.values() if unit.number is not None]
    return NumbersBehind(len(numbers), min(numbers, default=None), held)


def history(frame: PageFrame, request: Request) -> Response:
    """Shows what people did."""
    application = frame.application(request)
    problem, records = "", []
    try:
        records = application.operations.history() if application.has_log else []
    except KainiteError as error:
        problem = str(error)
    return frame.page(request, "history.html", application, problem=problem, records=records[::-1])
