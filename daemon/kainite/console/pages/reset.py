"""A reset of checkpoints: which shards, to where, and what that repeats or skips."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from kainite.console.actions import POSITIONS
from kainite.console.observed import ObservedApplication
from kainite.console.pages.frame import PageFrame


def reset(frame: PageFrame, request: Request) -> Response:
    """Asks to where checkpoints are reset."""
    application = frame.application(request)
    return choosing(frame, request, application, {"shard": request.query_params.get("shard", "")})


def choosing(
    frame: PageFrame, request: Request, application: ObservedApplication, sent: Mapping[str, str], *,
    refusal: str = "", code: int = 200,
) -> Response:  # fmt: skip
    """Returns the page with what was chosen; arguments as of :func:`kainite.console.pages.correct.editing`."""
    leases = application.verdict().facts.leases
    rows = [row for row in leases.rows if not sent.get("shard") or row.shard == sent["shard"]] if leases else []
    return frame.page(
        request, "reset.html", application, status=code, sent=sent, refusal=refusal, rows=rows, positions=POSITIONS
    )
