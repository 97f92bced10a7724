"""One shard: who reads it, and the last lines that its child wrote to standard error."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from kainite.console.pages.frame import PageFrame
from kainite.console.shard_rows import shard_rows, worker_rows
from kainite.verdict.health_page import ask_child_words
from kainite.verdict.reading import own_pages


def shard(frame: PageFrame, request: Request) -> Response:
    """Shows one shard; asks the daemons of the settings file on this host for its child's last lines."""
    application = frame.application(request)
    verdict, name = application.verdict(), request.query_params.get("shard", "")
    row = next((each for each in shard_rows(verdict) if each.shard == name), None)
    if row is None:
        raise HTTPException(404, f"there is no shard {name!r}")
    words = ask_child_words(own_pages(application.settings)).get(name)
    return frame.page(
        request, "shard.html", application, verdict=verdict, shard=row, words=words, workers=worker_rows(verdict)
    )
