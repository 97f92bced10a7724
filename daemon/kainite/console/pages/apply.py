"""What the apply job does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kainite.console.batches import ObservedMicroBatch
from kainite.console.lock_watch import LockWaits
from kainite.console.observed import ObservedApplication
from kainite.console.observed_target import ObservedTarget, lock_waits
from kainite.console.pages.frame import PageFrame
from kainite.console.paging import ListPage, page_number, page_of
from kainite.fleet.model.records import Duty, DutyKind, Work
from kainite.log.views.unit_table import LogRow
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
    chosen = targets_asked_for(application.targets, request.query_params.get("target"))
    locks = lock_waits(chosen) if application.has_log else [LockWaits() for _ in chosen]
    with application.lock:
        views = [_view(application, *each) for each in zip(chosen, locks, strict=True)]
    return frame.page(
        request,
        "apply.html",
        application,
        paused=_paused(verdict),
        verdict=verdict,
        reading=reading,
        views=views,
        wanted=views[0].name if len(views) < len(application.targets) else "",
        duties=duties_of_tables(verdict),
        tables=tables_page(verdict, request.query_params.get("tables")),
    )


@dataclass(frozen=True, slots=True)
class AppliedTarget:
    """What the page shows of one target.

    Attributes:
        name: its name; empty for an only one.
        kind: its kind, for people.
        tables: which tables belong to it, as the settings have them; empty: all others.
        batches: its apply job's latest micro-batches, the oldest first.
        waiting: the first units that stand still there, with their status and cause there.
        locks: who waits for locks there.
    """

    name: str
    kind: str
    tables: Sequence[str]
    batches: Sequence[ObservedMicroBatch]
    waiting: Sequence[LogRow]
    locks: LockWaits


def targets_asked_for(targets: Sequence[ObservedTarget], wanted: str | None) -> list[ObservedTarget]:
    """Returns the target that a query names; all where it names none."""
    return [target for target in targets if wanted and target.name == wanted] or list(targets)


def _view(application: ObservedApplication, target: ObservedTarget, locks: LockWaits) -> AppliedTarget:
    units = application.units
    there = units.in_target(target.name) if application.has_parts else units.dispatched()
    still = (each for each in there if each.cause is not None and not each.resolved)
    waiting = [units.row(unit) for unit in islice(still, MOST_STILL)]
    return AppliedTarget(target.name, target.kind, target.tables, target.batches.latest(), waiting, locks)


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
