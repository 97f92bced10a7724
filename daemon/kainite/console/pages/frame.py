"""What all pages share: which application a request is about, how a page is rendered, what is said where that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from kainite import __version__
from kainite.base.clock import epoch_ms
from kainite.console.access import Visitor
from kainite.console.guard import VISITOR
from kainite.console.observed import ObservedApplication
from kainite.console.rendering import environment
from kainite.settings import ConsoleSettings


class PageFrame:
    """The frame of each page.

    Args:
        applications: the applications that are shown, each with another name.
        settings: the console's, of the first file.
    """

    def __init__(self, applications: Sequence[ObservedApplication], settings: ConsoleSettings) -> None:
        self.applications = {application.name: application for application in applications}
        self.settings = settings
        self._templates = environment(settings.prefix)

    def application(self, request: Request) -> ObservedApplication:
        """Returns the application that a request's path names.

        Raises:
            HTTPException: there is none.
        """
        found = self.applications.get(request.path_params["app"])
        if found is None:
            raise HTTPException(404, "there is no such application here")
        return found

    def page(
        self, request: Request, template: str, application: ObservedApplication | None, status: int = 200, **values: Any
    ) -> Response:
        """Returns a page, or its live region alone where that is asked for."""
        verdict = values.pop("verdict", None)
        if verdict is None and application is not None:
            verdict = application.verdict()
        return self._rendered(
            request, template, status, app=application, verdict=verdict, live="hx-request" in request.headers,
            path=request.url.path.rpartition("/")[2], here=str(request.url.query), **values,
        )  # fmt: skip

    def problem(self, request: Request, error: Exception) -> Response:
        """Returns the page that says why there is none."""
        status = error.status_code if isinstance(error, HTTPException) else 500
        why = error.detail if isinstance(error, HTTPException) else str(error)
        return self._rendered(
            request, "problem.html", status, app=None, verdict=None, live=False, path="", here="", why=why
        )

    def failed(self, request: Request, error: Exception) -> Response:
        """Returns the page that says what could not be read."""
        return self.problem(request, HTTPException(503, str(error)))

    def _rendered(self, request: Request, template: str, code: int, **values: Any) -> Response:
        visitor: Visitor = request.scope[VISITOR]
        text = self._templates.get_template(template).render(
            apps=list(self.applications), visitor=visitor, version=__version__, now_ms=epoch_ms(),
            prefix=self.settings.prefix, status=code, **values,
        )  # fmt: skip
        return HTMLResponse(text, code)


def start(frame: PageFrame, request: Request) -> Response:
    """Lists the applications, or leads to the only one."""
    if len(frame.applications) == 1:
        (only,) = frame.applications
        return RedirectResponse(f"{frame.settings.prefix}/{only}/")
    verdicts = [application.verdict() for application in frame.applications.values()]
    return frame.page(request, "applications.html", None, verdicts=verdicts)


def slash(frame: PageFrame, request: Request) -> Response:
    """Leads from an application's address without a slash to the one with it."""
    application = frame.application(request)
    return RedirectResponse(f"{frame.settings.prefix}/{application.name}/")
