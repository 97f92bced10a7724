"""The console's pages: each reads what it needs, and renders it. Handlers run on threads, since reading blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from itertools import islice
from typing import Any, Final
from urllib.parse import parse_qsl

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from kainite import __version__
from kainite.base import display
from kainite.base.clock import epoch_ms
from kainite.base.errors import KainiteError, LogRequestError
from kainite.base.redaction import RowValues, redacted_tree
from kainite.console.access import Visitor
from kainite.console.actions import LOSES, SENT, TITLES, operation_of
from kainite.console.figures import FigureSlot
from kainite.console.guard import VISITOR
from kainite.console.observed import LogReading, ObservedApplication
from kainite.console.rendering import at, environment, link
from kainite.console.settings_view import settings_view
from kainite.console.shard_rows import shard_rows, worker_rows
from kainite.console.unit_view import delta_views, shown_deltas, timeline
from kainite.console.way import stations
from kainite.log.format.entry import UnitStatus
from kainite.log.state.chains import Chains
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.unit_filter import UnitFilter
from kainite.log.state.unit_state import UnitState
from kainite.log.views.unit_detail import read_deltas_at
from kainite.log.views.unit_search import all_tables, find
from kainite.log.views.unit_table import COLLECTING, LogRow
from kainite.settings import ConsoleSettings
from kainite.verdict.judging import ApplicationVerdict

PAGE: Final = 50
"""Units on a page."""

MOST_DELTAS: Final = 100
"""Deltas on a unit's page; the copy as JSON has :data:`MOST_COPIED`."""

MOST_COPIED: Final = 100_000
MOST_FIELDS: Final = 20
MOST_WHY: Final = 500
MOST_BEHIND: Final = 12
"""Units that are shown of those that wait for another one."""

STATUSES: Final = (
    COLLECTING, UnitStatus.IN_PROGRESS, UnitStatus.BLOCKED, UnitStatus.FAILED, UnitStatus.DISCARDING,
    UnitStatus.COMMITTED, UnitStatus.DISCARDED,
)  # fmt: skip
_TABLE_STEPS: Final = 12


class Console:
    """The pages.

    Args:
        applications: the applications that are shown, each with another name.
        settings: the console's, of the first file.
    """

    def __init__(self, applications: Sequence[ObservedApplication], settings: ConsoleSettings) -> None:
        self._applications = {application.name: application for application in applications}
        self._settings = settings
        self._templates = environment(settings.prefix)

    def asgi(self) -> Starlette:
        """Returns the pages as an ASGI application."""
        static = StaticFiles(directory=str(files("kainite.console") / "static"))
        return Starlette(
            routes=[
                Route("/", self.applications),
                Mount(f"/static/{__version__}", static),
                Route("/{app}", self.slash),
                Route("/{app}/", self.overview),
                Route("/{app}/figures", self.figures),
                Route("/{app}/figures.json", self.figures_json),
                Route("/{app}/units", self.units),
                Route("/{app}/unit", self.unit),
                Route("/{app}/unit.json", self.unit_json),
                Route("/{app}/shards", self.shards),
                Route("/{app}/apply", self.apply),
                Route("/{app}/log", self.log),
                Route("/{app}/history", self.history),
                Route("/{app}/do", self.do, methods=["POST"]),
            ],
            exception_handlers={HTTPException: self._problem, KainiteError: self._failed},
        )

    def applications(self, request: Request) -> Response:
        """Lists the applications, or leads to the only one."""
        if len(self._applications) == 1:
            (only,) = self._applications
            return RedirectResponse(f"{self._settings.prefix}/{only}/")
        verdicts = [application.verdict() for application in self._applications.values()]
        return self._page(request, "applications.html", None, verdicts=verdicts)

    def slash(self, request: Request) -> Response:
        """Leads from an application's address without a slash to the one with it."""
        application = self._application(request)
        return RedirectResponse(f"{self._settings.prefix}/{application.name}/")

    def overview(self, request: Request) -> Response:
        """Shows the way of the data, the checks, the lag and the charts."""
        application = self._application(request)
        verdict = application.verdict()
        reading = application.read_units()
        with application.lock:
            rate = application.figures.rate(epoch_ms())
            slots = application.figures.series(epoch_ms())
        return self._page(
            request, "overview.html", application, verdict=verdict, reading=reading,
            stations=stations(verdict, rate, application.target_kind), steps=_steps(slots),
        )  # fmt: skip

    def figures(self, request: Request) -> Response:
        """Shows what the charts show, as a table."""
        application = self._application(request)
        application.read_units()
        with application.lock:
            slots = application.figures.series(epoch_ms())
        return self._page(request, "figures.html", application, steps=_steps(slots))

    def figures_json(self, request: Request) -> Response:
        """Gives the charts their figures."""
        application = self._application(request)
        application.verdict()
        application.read_units()
        with application.lock:
            slots = application.figures.series(epoch_ms())
        names = ("at", "rate", "p50", "p99", "waiting", "failed")
        return JSONResponse({name: [getattr(slot, name) for slot in slots] for name in names})

    def units(self, request: Request) -> Response:
        """Lists the units that a filter finds."""
        application = self._application(request)
        reading = application.read_units()
        wanted, page = filter_of(request.query_params), _page_number(request.query_params.get("page"))
        name = request.query_params.get("name", "").strip()
        with application.lock:
            found = find(application.units, wanted, (page - 1) * PAGE, PAGE)
            tables = all_tables(application.units)
            by_id = application.units.unit(int(name)) if name.isdecimal() and len(name) < 19 else None
        return self._page(
            request, "units.html", application, reading=reading, wanted=wanted, found=found, by_id=by_id, tables=tables,
            page=page, per_page=PAGE, statuses=STATUSES, query=request.query_params,
        )  # fmt: skip

    def unit(self, request: Request) -> Response:
        """Shows one unit."""
        application, reading, row, unit, chain = self._unit(request)
        most = MOST_DELTAS
        entries = unit.entries if isinstance(unit, UnitState) else tuple(unit.fragments)
        problem, deltas = "", []
        try:
            deltas = read_deltas_at(application.store, application.settings.log.partition, entries, most + 1)
        except KainiteError as error:
            problem = str(error)
        display_of = self._settings.shown_values
        return self._page(
            request, "unit.html", application, reading=reading, row=row, chain=chain, timeline=timeline(row),
            deltas=delta_views(deltas[:most], display_of), more=len(deltas) > most, problem=problem, display=display_of,
            attempts=unit.attempt + 1 if isinstance(unit, UnitState) else 0,
            obstacle=unit.obstacle if isinstance(unit, UnitState) else None,
        )  # fmt: skip

    def unit_json(self, request: Request) -> Response:
        """Gives one unit as JSON."""
        application, _, row, unit, chain = self._unit(request)
        entries = unit.entries if isinstance(unit, UnitState) else tuple(unit.fragments)
        deltas = read_deltas_at(application.store, application.settings.log.partition, entries, MOST_COPIED)
        shown = {name: getattr(row, name) for name in row.__slots__ if name not in ("signature", "trans_in")}
        chained = {side: [_chained(each) for each in rows] for side, rows in chain.items() if side != "more"}
        copied = RowValues(shown_deltas(deltas, self._settings.shown_values))
        return Response(
            display.as_json(redacted_tree({**shown, **chained, "deltas": copied})), media_type="application/json"
        )

    def shards(self, request: Request) -> Response:
        """Shows shards, daemons and duties."""
        application = self._application(request)
        verdict = application.verdict()
        return self._page(
            request,
            "shards.html",
            application,
            verdict=verdict,
            shards=shard_rows(verdict),
            workers=worker_rows(verdict),
        )

    def apply(self, request: Request) -> Response:
        """Shows micro-batches, lanes, and units that wait."""
        application = self._application(request)
        verdict = application.verdict()
        reading = application.read_units()
        with application.lock:
            batches = application.batches.latest()
            still = (each for each in application.units.dispatched() if each.cause is not None and not each.resolved)
            waiting = [application.units.row(unit) for unit in islice(still, PAGE)]
        return self._page(
            request,
            "apply.html",
            application,
            paused=_paused(verdict),
            verdict=verdict,
            reading=reading,
            batches=batches,
            waiting=waiting,
        )

    def log(self, request: Request) -> Response:
        """Shows the log's owner and marks, and the settings in force."""
        application = self._application(request)
        verdict = application.verdict()
        reading = application.read_units()
        with application.lock:
            head = application.units.head
            held = len(application.units)
        return self._page(
            request, "log.html", application, verdict=verdict, reading=reading, head=head, held=held,
            settings=settings_view(application.file, application.settings),
        )  # fmt: skip

    def history(self, request: Request) -> Response:
        """Shows what people did."""
        application = self._application(request)
        problem, records = "", []
        try:
            records = application.operations.history() if application.has_log else []
        except KainiteError as error:
            problem = str(error)
        return self._page(request, "history.html", application, problem=problem, records=records[::-1])

    async def do(self, request: Request) -> Response:
        """Asks whether an operation is meant, or carries it out."""
        try:
            body = await request.body()
        except ClientDisconnect:
            return PlainTextResponse("kainite: the form is too large\n", 413)
        try:
            sent = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
        except ValueError:
            return PlainTextResponse("kainite: the form has too many fields\n", 400)
        return await run_in_threadpool(self._do, request, dict(sent))

    def _do(self, request: Request, form: Mapping[str, str]) -> Response:
        application = self._application(request)
        title, back = TITLES.get(form.get("do", ""), "Not done"), self._back(request, application, form)
        try:
            operation = operation_of(form)
            if "sure" not in form:
                return self._page(
                    request, "sure.html", application, title=title, back=back, loses=form["do"] in LOSES,
                    preview=application.operations.preview(operation),
                    sent={name: form[name] for name in SENT if form.get(name)},
                )  # fmt: skip
            visitor: Visitor = request.scope[VISITOR]
            outcome = application.operations.carry_out(operation, visitor.user, form.get("why", "")[:MOST_WHY])
            result, sentence = outcome.result.value, outcome.sentence
            refused, details = outcome.refused, outcome.details[:PAGE]
        except KainiteError as error:
            result, sentence, refused, details = _failure(error), str(error), 0, ()
        status = 200 if result in ("done", "asked") else 409 if result == "refused" else 503
        return self._page(
            request, "outcome.html", application, status=status, title=title, back=back, result=result,
            sentence=sentence, refused=refused, details=details,
        )  # fmt: skip

    def _back(self, request: Request, application: ObservedApplication, form: Mapping[str, str]) -> Markup:
        pages = {"retry": "units", "discard": "units", "pause": "apply", "resume": "apply", "hand-over": "log"}
        if form.get("uow"):
            return link(self._settings.prefix, application.name, "unit", uow=form["uow"])
        return link(self._settings.prefix, application.name, pages.get(form.get("do", ""), "shards"))

    def _application(self, request: Request) -> ObservedApplication:
        found = self._applications.get(request.path_params["app"])
        if found is None:
            raise HTTPException(404, "there is no such application here")
        return found

    def _unit(self, request: Request) -> tuple[ObservedApplication, LogReading, LogRow, Any, Mapping[str, Any]]:
        application = self._application(request)
        reading = application.read_units()
        name, number = request.query_params.get("uow", ""), request.query_params.get("id", "")
        units = application.units
        with application.lock:
            unit = units.unit(int(number)) if number.isdecimal() and len(number) < 19 else units.named(name)
            if unit is None:
                more = "" if reading.complete else "; the log is not read to its end yet: try again"
                raise HTTPException(
                    404,
                    f"no unit {number or name!r} is in the log; units that were applied leave it after a while{more}",
                )
            chain = _chain(application, unit)
            return application, reading, units.row(unit), unit, chain

    def _page(
        self, request: Request, template: str, application: ObservedApplication | None, status: int = 200, **values: Any
    ) -> Response:
        visitor: Visitor = request.scope[VISITOR]
        verdict = values.pop("verdict", None)
        if verdict is None and application is not None:
            verdict = application.verdict()
        text = self._templates.get_template(template).render(
            app=application, apps=list(self._applications), visitor=visitor, version=__version__, verdict=verdict,
            now_ms=epoch_ms(), live="hx-request" in request.headers, path=request.url.path.rpartition("/")[2],
            here=str(request.url.query), prefix=self._settings.prefix, **values,
        )  # fmt: skip
        return HTMLResponse(text, status)

    def _problem(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        why = error.detail if isinstance(error, HTTPException) else str(error)
        text = self._templates.get_template("problem.html").render(
            app=None, apps=list(self._applications), visitor=request.scope[VISITOR], version=__version__, verdict=None,
            now_ms=epoch_ms(), live=False, path="", here="", prefix=self._settings.prefix, why=why, status=status,
        )  # fmt: skip
        return HTMLResponse(text, status)

    def _failed(self, request: Request, error: Exception) -> Response:
        return self._problem(request, HTTPException(503, str(error)))


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
        _moment(query.get("since", "")),
        _moment(query.get("until", "")),
    )


def _moment(text: str) -> int | None:
    """Returns a moment in UTC as a form has it, in milliseconds since the epoch."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _page_number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and 0 < len(text) < 8 and int(text) else 1


def _chain(application: ObservedApplication, unit: UnitState | OpenUnit) -> Mapping[str, Any]:
    """Returns the units that a unit waits for, the root first, and the first ones of those that wait for it."""
    if isinstance(unit, OpenUnit):
        return {"before": [], "behind": [], "more": 0}
    units = application.units
    chains = Chains((each.tid, each.status.value, each.cause) for each in units.dispatched() if not each.resolved)
    behind = chains.behind(unit.tid)
    before = [units.unit(tid) for tid in reversed(chains.before(unit.tid))]
    shown = [units.unit(tid) for tid in behind[:MOST_BEHIND]]
    return {
        "before": [units.row(each) for each in before if each is not None],
        "behind": [units.row(each) for each in shown if each is not None],
        "more": max(0, len(behind) - MOST_BEHIND),
    }


def _paused(verdict: ApplicationVerdict) -> str:
    log = verdict.facts.log
    return log.summary.paused if log is not None and log.summary is not None else ""


def _failure(error: KainiteError) -> str:
    return "refused" if isinstance(error, LogRequestError) else "failed"


def _chained(row: LogRow) -> dict[str, Any]:
    return {"id": row.id, "uow": row.uow, "status": row.status, "cause": row.cause}


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


def _highest(figures: Any) -> Any:
    return max((figure for figure in figures if figure is not None), default=None)
