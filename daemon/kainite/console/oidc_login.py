"""The login by OpenID Connect as the browser sees it: three paths, and two cookies.

================  ====================================================================================================
path              does
================  ====================================================================================================
/oidc/login       begins a login, and leads to the provider
/oidc/callback    is where the provider leads back to: opens a session, and leads to the page that was asked for
/oidc/logout      ends the session (POST)
================  ====================================================================================================

Who is not logged in gets a page that leads on by itself, and not a redirect: a form's redirect to another site is
refused by the Content-Security-Policy.
"""

from __future__ import annotations

import asyncio
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import quote, urlsplit

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Scope

from kainite.console.access import RefusedRequest
from kainite.console.oidc import OidcProvider
from kainite.console.sessions import LOGIN_S, SESSION_S, Sessions

AT_ONCE: Final = 4
"""Logins for which the provider is asked at the same time; others wait."""

_PAGE: Final = Markup(
    '<!doctype html><html lang="en"><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark">'
    '<title>Kainite</title><main><h1>Kainite</h1><p>{}</p><p><a href="{}">Log in</a></p></main></html>'
)


class OidcLogin:
    """The login.

    Args:
        provider: the provider.
        sessions: the sessions.
        prefix: the path before all paths.
        secure: whether browsers reach the console encrypted: then no cookie goes another way.
    """

    def __init__(self, provider: OidcProvider, sessions: Sessions, prefix: str, *, secure: bool) -> None:
        self._provider = provider
        self._sessions = sessions
        self._prefix = prefix
        self._secure = secure
        name = "__Host-kainite" if secure else "kainite"
        self.session_cookie, self.login_cookie = f"{name}-session", f"{name}-login"
        self._turns = asyncio.Semaphore(AT_ONCE)

    def user(self, cookies: str) -> str | None:
        """Returns who is logged in; None for nobody."""
        return self._sessions.user(_cookie(cookies, self.session_cookie))

    async def answer(self, scope: Scope) -> Response | None:
        """Answers a request to one of the paths; None for another path."""
        request = Request(scope)
        match request.url.path.removeprefix(scope.get("root_path", "")), request.method:
            case "/oidc/login", "GET":
                return await self._begin(request)
            case "/oidc/callback", "GET":
                return await self._end(request)
            case "/oidc/logout", "POST":
                self._sessions.close(self._sent(request, self.session_cookie))
                page = self._page("You are logged out.", 200)
                self._set(page, self.session_cookie, "", 0)
                return page
        return None

    def ask(self, path: str, query: str) -> Response:
        """Returns the page for somebody who asks for a page and is not logged in."""
        wanted = f"{self._prefix}{path}{'?' if query else ''}{query}"
        page = self._page("You are not logged in.", 401, wanted)
        page.headers["refresh"] = f"0; url={self._address(wanted)}"
        return page

    async def _begin(self, request: Request) -> Response:
        wanted = request.query_params.get("next", "")
        login = self._sessions.begin(_own_path(wanted), self._sent(request, self.login_cookie))
        async with self._turns:
            found = await asyncio.to_thread(self._provider.address, login)
        if isinstance(found, RefusedRequest):
            return self._page(found.why, found.status)
        answer = RedirectResponse(found, 303)
        self._set(answer, self.login_cookie, login.browser, int(LOGIN_S))
        return answer

    async def _end(self, request: Request) -> Response:
        query = request.query_params
        login = self._sessions.take(query.get("state", ""), self._sent(request, self.login_cookie))
        if login is None:
            return self._page("This login is over, or another browser has begun it.", 403)
        if query.get("iss", self._provider.issuer) != self._provider.issuer:
            return self._page("Another provider has answered.", 403)
        if "code" not in query:
            told = query.get("error_description") or query.get("error") or "no reason"
            return self._page(f"The provider does not log you in: {told[:300]}.", 403)
        async with self._turns:
            user = await asyncio.to_thread(self._provider.user, login, query["code"])
        if isinstance(user, RefusedRequest):
            return self._page(f"You are not logged in: {user.why}.", user.status)
        answer = RedirectResponse(login.path, 303)
        self._set(answer, self.session_cookie, self._sessions.open(user), int(SESSION_S))
        self._set(answer, self.login_cookie, "", 0)
        return answer

    def _page(self, text: str, status: int, wanted: str = "") -> Response:
        return HTMLResponse(_PAGE.format(text, self._address(wanted or f"{self._prefix}/")), status)

    def _address(self, wanted: str) -> str:
        return f"{self._prefix}/oidc/login?next={quote(wanted, safe='')}"

    def _sent(self, request: Request, name: str) -> str:
        return _cookie(request.headers.get("cookie", ""), name)

    def _set(self, answer: Response, name: str, value: str, age: int) -> None:
        answer.set_cookie(name, value, max_age=age, path="/", secure=self._secure, httponly=True, samesite="lax")


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _own_path(wanted: str) -> str:
    """Returns a path of this console, and no other site's: browsers read ``//host`` and ``/\\host`` as such."""
    parts = urlsplit(wanted.replace("\\", "/"))
    safe = wanted.startswith("/") and not wanted.replace("\\", "/").startswith("//") and not parts.netloc
    return wanted if safe and wanted.isprintable() else "/"
