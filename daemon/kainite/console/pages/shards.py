"""Shards, daemons and duties."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from kainite.console.pages.frame import PageFrame
from kainite.console.shard_rows import shard_rows, worker_rows


def shards(frame: PageFrame, request: Request) -> Response:
    """Shows shards, daemons and duties."""
    application = frame.application(request)
    verdict = application.verdict()
    return frame.page(
        request,
        "shards.html",
        application,
        verdict=verdict,
        shards=shard_rows(verdict),
        workers=worker_rows(verdict),
    )
