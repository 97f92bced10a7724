"""What a person does: asked about first, then carried out.

An operation that is refused keeps the page from which it was sent, with the reason and what was typed. One of which
nobody knows what became of it does not: sent again, it could be carried out twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from kainite.base.errors import KainiteError, LogRequestError
from kainite.console.access import Visitor
from kainite.console.actions import LOSES, SENT, TITLES, as_sent, operation_of
from kainite.console.guard import VISITOR
from kainite.console.observed import ObservedApplication
from kainite.console.pages.correct import changes_of, editing
from kainite.console.pages.frame import PageFrame
from kainite.console.pages.reset import choosing
from kainite.console.pages.unit import found_unit
from kainite.console.rendering import link
from kainite.log.format.entry import OperationResult
from kainite.operations.operation import AnyOperation, CorrectUnit, OperationOutcome, Preview

MOST_FIELDS: Final = 20
MOST_WHY: Final = 500
MOST_DETAILS: Final = 50

_PAGES: Final = {
    "retry": "units", "discard": "units", "pause": "apply", "resume": "apply", "hand-over": "log", "skip": "log",
}  # fmt: skip
"""The page from which an operation is sent; all others are sent from that of the shards."""

_CODES: Final = {"done": 200, "asked": 200, "refused": 409, "failed": 503}


async def do(frame: PageFrame, request: Request) -> Response:
    """Asks whether an operation is meant, or carries it out."""
    try:
        body = await request.body()
    except ClientDisconnect:
        return PlainTextResponse("kainite: the form is too large\n", 413)
    try:
        sent = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        return PlainTextResponse("kainite: the form has too many fields\n", 400)
    return await run_in_threadpool(_do, frame, request, as_sent(dict(sent)))


def _do(frame: PageFrame, request: Request, form: Mapping[str, str]) -> Response:
    application = frame.application(request)
    try:
        operation = operation_of(form)
        if "sure" not in form:
            preview = application.operations.preview(operation)
            if not preview.refusal:
                return _asked(frame, request, application, form, preview)
            return _kept(frame, request, application, form, preview.refusal, "refused")
    except KainiteError as error:
        return _kept(frame, request, application, form, str(error), _result(error))
    return _carried_out(frame, request, application, form, operation)


def _carried_out(
    frame: PageFrame, request: Request, application: ObservedApplication, form: Mapping[str, str],
    operation: AnyOperation,
) -> Response:  # fmt: skip
    visitor: Visitor = request.scope[VISITOR]
    try:
        outcome = application.operations.carry_out(operation, visitor.user, form.get("why", "")[:MOST_WHY])
    except KainiteError as error:
        return _told(frame, request, application, form, _result(error), OperationOutcome(_result(error), str(error)))
    finally:
        application.read_anew()
    if outcome.result is OperationResult.REFUSED:
        return _kept(frame, request, application, form, outcome.sentence, "refused")
    return _told(frame, request, application, form, outcome.result, outcome)


def _asked(
    frame: PageFrame, request: Request, application: ObservedApplication, form: Mapping[str, str], preview: Preview,
    refusal: str = "",
) -> Response:  # fmt: skip
    """Returns the page that says what would be done, and asks."""
    operation, changes = operation_of(form), None
    if isinstance(operation, CorrectUnit):
        changes = changes_of(frame, found_unit(frame, request, form), operation.deltas)
    return frame.page(
        request, "sure.html", application, status=409 if refusal else 200, title=_title(form),
        back=_back(frame, application, form), loses=form["do"] in LOSES, preview=preview, refusal=refusal,
        changes=changes, why=form.get("why", ""), sent={name: form[name] for name in SENT if form.get(name)},
    )  # fmt: skip


def _kept(
    frame: PageFrame, request: Request, application: ObservedApplication, form: Mapping[str, str], why: str,
    result: str,
) -> Response:  # fmt: skip
    """Returns the page from which a form was sent, with why it was not taken."""
    match form.get("do"):
        case "correct" if form.get("uow"):
            try:
                found = found_unit(frame, request, form)
            except HTTPException:
                return _told(frame, request, application, form, result, OperationOutcome(OperationResult(result), why))
            return editing(frame, request, found, form, refusal=why, code=_CODES[result])
        case "reset":
            return choosing(frame, request, application, form, refusal=why, code=_CODES[result])
    if "sure" in form:
        try:
            return _asked(frame, request, application, form, application.operations.preview(operation_of(form)), why)
        except KainiteError:
            pass  # what is asked about cannot be read either: the reason stands alone
    return _told(frame, request, application, form, result, OperationOutcome(OperationResult(result), why))


def _told(
    frame: PageFrame, request: Request, application: ObservedApplication, form: Mapping[str, str], result: str,
    outcome: OperationOutcome,
) -> Response:  # fmt: skip
    """Returns the page that says what has become of an operation."""
    values: dict[str, Any] = {"result": str(result), "sentence": outcome.sentence, "refused": outcome.refused}
    return frame.page(
        request, "outcome.html", application, status=_CODES[result], title=_title(form),
        back=_back(frame, application, form), details=outcome.details[:MOST_DETAILS], **values,
    )  # fmt: skip


def _title(form: Mapping[str, str]) -> str:
    return TITLES.get(form.get("do", ""), "Not done")


def _back(frame: PageFrame, application: ObservedApplication, form: Mapping[str, str]) -> Markup:
    if form.get("uow"):
        return link(frame.settings.prefix, application.name, "unit", uow=form["uow"])
    if form.get("shard"):
        return link(frame.settings.prefix, application.name, "shard", shard=form["shard"])
    return link(frame.settings.prefix, application.name, _PAGES.get(form.get("do", ""), "shards"))


def _result(error: KainiteError) -> OperationResult:
    return OperationResult.REFUSED if isinstance(error, LogRequestError) else OperationResult.FAILED
