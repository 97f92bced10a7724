"""What a person does: asked about first, then carried out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from kainite.base.errors import KainiteError, LogRequestError
from kainite.console.access import Visitor
from kainite.console.actions import LOSES, SENT, TITLES, operation_of
from kainite.console.guard import VISITOR
from kainite.console.observed import ObservedApplication
from kainite.console.pages.frame import PageFrame
from kainite.console.rendering import link

MOST_FIELDS: Final = 20
MOST_WHY: Final = 500
MOST_DETAILS: Final = 50


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
    return await run_in_threadpool(_do, frame, request, dict(sent))


def _do(frame: PageFrame, request: Request, form: Mapping[str, str]) -> Response:
    application = frame.application(request)
    title, back = TITLES.get(form.get("do", ""), "Not done"), _back(frame, application, form)
    try:
        operation = operation_of(form)
        if "sure" not in form:
            return frame.page(
                request, "sure.html", application, title=title, back=back, loses=form["do"] in LOSES,
                preview=application.operations.preview(operation),
                sent={name: form[name] for name in SENT if form.get(name)},
            )  # fmt: skip
        visitor: Visitor = request.scope[VISITOR]
        outcome = application.operations.carry_out(operation, visitor.user, form.get("why", "")[:MOST_WHY])
        result, sentence = outcome.result.value, outcome.sentence
        refused, details = outcome.refused, outcome.details[:MOST_DETAILS]
    except KainiteError as error:
        result, sentence, refused, details = _failure(error), str(error), 0, ()
    status = 200 if result in ("done", "asked") else 409 if result == "refused" else 503
    return frame.page(
        request, "outcome.html", application, status=status, title=title, back=back, result=result,
        sentence=sentence, refused=refused, details=details,
    )  # fmt: skip


def _back(frame: PageFrame, application: ObservedApplication, form: Mapping[str, str]) -> Markup:
    pages = {"retry": "units", "discard": "units", "pause": "apply", "resume": "apply", "hand-over": "log"}
    if form.get("uow"):
        return link(frame.settings.prefix, application.name, "unit", uow=form["uow"])
    return link(frame.settings.prefix, application.name, pages.get(form.get("do", ""), "shards"))


def _failure(error: KainiteError) -> str:
    return "refused" if isinstance(error, LogRequestError) else "failed"
