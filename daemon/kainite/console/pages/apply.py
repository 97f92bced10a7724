"""What the apply job does."""

from __future__ import annotations

from itertools import islice
from pathlib import PurePath
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kainite.console.pages.frame import PageFrame
from kainite.console.paging import ListPage, page_number, page_of
from kainite.fleet.model.records import Duty, DutyKind, Work
from kainite.verdict.facts import ReplicaTableFacts
from kainite.verdict.judging import ApplicationVerdict

MOST_STILL: Final = 50
"""Units that are shown of those that stand still."""

TABLES: Final = 50
"""Tables of a replica on a page."""


def apply(frame: PageFrame, request: Request) -> Response:
    """Shows micro-batches, lanes, units that wait, and a replica's tables."""
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
        locks=application.locks.latest(),
        duties=duties_of_tables(verdict),
        tables=tables_page(verdict, request.query_params.get("tables")),
    )


def _paused(verdict: ApplicationVerdict) -> str:
    log = verdict.facts.log
    return log.summary.paused if log is not None and log.summary is not None else ""


def tables_page(verdict: ApplicationVerdict, wanted: str | None) -> ListPage[ReplicaTableFacts]:
    """Returns a page of a replica's tables; empty where there is no replica, or it was not asked."""
    replica = verdict.facts.replica
    return page_of(replica.tables if replica is not None else (), page_number(wanted), TABLES)


def duties_of_tables(verdict: ApplicationVerdict) -> list[Duty]:
    """Returns the duties that verify the target or load tables of it, by name: who starts one has it done now."""
    fleet = verdict.facts.fleet
    duties = fleet.picture.duties if fleet is not None and fleet.picture is not None else {}
    return [duty for _, duty in sorted(duties.items()) if _is_of_tables(duty.work)]


def _is_of_tables(work: Work) -> bool:
    command = work.command
    if work.kind == DutyKind.VERIFY:
        return True
    words = tuple(command[1:3]) if command and PurePath(command[0]).name == "kainite" else ()
    return words[:1] == ("verify",) or words in (("replicate", "load"), ("replicate", "reload"), ("replicate", "add"))
