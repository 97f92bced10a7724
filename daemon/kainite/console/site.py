"""The console's pages by their paths, as an ASGI application. Handlers run on threads, since reading blocks."""

from __future__ import annotations

from functools import partial
from importlib.resources import files

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from kainite import __version__
from kainite.base.errors import KainiteError
from kainite.console.pages import apply, correct, doing, log, overview, reset, shard, shards, target_rows, unit, units
from kainite.console.pages.frame import PageFrame, slash, start

_PAGES = {
    "/": start,
    "/{app}": slash,
    "/{app}/": overview.overview,
    "/{app}/figures": overview.figures,
    "/{app}/figures.json": overview.figures_json,
    "/{app}/units": units.units,
    "/{app}/unit": unit.unit,
    "/{app}/target-rows": target_rows.target_rows,
    "/{app}/unit.json": unit.unit_json,
    "/{app}/correct": correct.correct,
    "/{app}/reset": reset.reset,
    "/{app}/shard": shard.shard,
    "/{app}/shards": shards.shards,
    "/{app}/apply": apply.apply,
    "/{app}/log": log.log,
    "/{app}/history": log.history,
}


def console_site(frame: PageFrame) -> Starlette:
    """Returns the pages as an ASGI application."""
    static = StaticFiles(directory=str(files("kainite.console") / "static"))
    return Starlette(
        routes=[
            Mount(f"/static/{__version__}", static),
            *(Route(path, partial(page, frame)) for path, page in _PAGES.items()),
            Route("/{app}/do", partial(doing.do, frame), methods=["POST"]),
        ],
        exception_handlers={HTTPException: frame.problem, KainiteError: frame.failed},
    )
