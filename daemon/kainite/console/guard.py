"""The guard before the console's pages: asks who a request is of, and sets the headers that bind the browser.

A secret takes a fifth of a second to compare, so one that was right is remembered for :data:`REMEMBERED_S`, by a keyed
hash. Only :data:`AT_ONCE` are compared at the same time, and the others wait: guessing costs the guesser's time alone.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kainite.base.logs import event
from kainite.console.access import ConsoleAccess, ConsoleRequest, Login, RefusedRequest, SessionNeeded, Visitor
from kainite.console.secrets import NOBODYS, HashedSecret

if TYPE_CHECKING:
    from kainite.console.oidc_login import OidcLogin

logger = logging.getLogger(__name__)

REMEMBERED_S: Final = 300.0
MOST_REMEMBERED: Final = 256
AT_ONCE: Final = 2
MOST_WAITING: Final = 20
MOST_BODY: Final = 256 * 1024
"""Bytes of the largest form: a correction that a person edits."""

VISITOR: Final = "kainite.visitor"
"""Where in a request's scope its visitor stands."""

_Headers: TypeAlias = list[tuple[bytes, bytes]]
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": _POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """An ASGI application before another one.

    Args:
        app: gets the requests that may be made.
        access: the rules.
        users: the users that log in, by name.
        prefix: the path before all paths; a proxy may have cut it off or not.
        secure: whether the browser's connection is encrypted.
        login: the login by OpenID Connect; None where nobody logs in there.
    """

    def __init__(
        self, app: ASGIApp, access: ConsoleAccess, users: Mapping[str, HashedSecret], prefix: str, *, secure: bool,
        login: OidcLogin | None = None,
    ) -> None:  # fmt: skip
        self._app = app
        self._access = access
        self._logins = Logins(users)
        self._oidc = login
        self._prefix = prefix
        self._headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        if secure:
            self._headers.append((b"strict-transport-security", b"max-age=31536000"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no page uses a WebSocket; uvicorn refuses one that nobody accepts
        path: str = scope["path"]
        if self._prefix and (path == self._prefix or path.startswith(f"{self._prefix}/")):
            scope["path"] = path[len(self._prefix) :] or "/"
        request = _request(scope)
        admitted = await self._admitted(request, scope)
        answer = self._bound(send)
        if isinstance(admitted, Response):
            await admitted(scope, receive, answer)
            return
        if isinstance(admitted, RefusedRequest):
            event(logger, logging.WARNING, "console refused a request", peer=request.peer, method=request.method,
                  path=path[:200], cause=admitted.why)  # fmt: skip
            await _refuse(admitted, basic=self._oidc is None)(scope, receive, answer)
            return
        scope[VISITOR] = admitted
        await self._app(scope, _limited(receive), answer)

    async def _admitted(self, request: ConsoleRequest, scope: Scope) -> RefusedRequest | Visitor | Response:
        found = self._access.admit(request)
        if isinstance(found, Login):
            refusal = await self._logins.refusal(found)
            found = self._access.visitor(found.user) if refusal is None else refusal
        if isinstance(found, RefusedRequest):
            return found
        visitor = await self._of_session(request, found, scope) if isinstance(found, SessionNeeded) else found
        if isinstance(visitor, Visitor):
            return self._access.may(request, visitor) or visitor
        return visitor

    async def _of_session(
        self, request: ConsoleRequest, needed: SessionNeeded, scope: Scope
    ) -> RefusedRequest | Visitor | Response:
        """Returns who has the session, or the answer to who has none yet."""
        if self._oidc is None:
            return RefusedRequest(401, "nobody can log in")
        if (answer := await self._oidc.answer(scope)) is not None:
            return answer
        user = self._oidc.user(needed.cookies)
        if user is not None:
            return self._access.visitor(user)
        if request.method != "GET" or "hx-request" in request.headers:
            return RefusedRequest(401, "your login is over: load the page again")
        return self._oidc.ask(scope["path"], scope["query_string"].decode("latin-1"))

    def _bound(self, send: Send) -> Send:
        async def bound(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers: _Headers = list(message.get("headers", ()))
                if not any(name == b"cache-control" for name, _ in headers):
                    headers.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*headers, *self._headers]}
            await send(message)

        return bound


class Logins:
    """Compares secrets, and remembers the right ones for a while.

    Args:
        users: the users by name.
    """

    def __init__(self, users: Mapping[str, HashedSecret]) -> None:
        self._users = users
        self._key = secrets.token_bytes(32)
        self._right: OrderedDict[bytes, float] = OrderedDict()
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    async def refusal(self, login: Login) -> RefusedRequest | None:
        """Returns why a login is refused; None where the secret is the user's."""
        mark = hmac.digest(self._key, f"{login.user}\0{login.secret}".encode("utf-8", "surrogatepass"), hashlib.sha256)
        if self._right.get(mark, -1.0) > time.monotonic():
            return None
        if self._waiting >= MOST_WAITING:
            return RefusedRequest(429, "too many log in at once; try again")
        self._waiting += 1
        try:
            async with self._turns:
                known = self._users.get(login.user)
                right = await asyncio.to_thread((known or NOBODYS).matches, login.secret)
        finally:
            self._waiting -= 1
        if known is None or not right:
            return RefusedRequest(401, "no such user, or another secret")
        self._right[mark] = time.monotonic() + REMEMBERED_S
        while len(self._right) > MOST_REMEMBERED:
            self._right.popitem(last=False)
        return None


def _request(scope: MutableMapping[str, Any]) -> ConsoleRequest:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]},{text}" if key in headers else text
    client = scope.get("client")
    return ConsoleRequest(scope["method"], client[0] if client else "", headers)


def _refuse(refusal: RefusedRequest, *, basic: bool) -> ASGIApp:
    asked = basic and refusal.status == 401
    headers = {"www-authenticate": 'Basic realm="Kainite", charset="UTF-8"'} if asked else None
    return PlainTextResponse(f"kainite: {refusal.why}\n", refusal.status, headers)


def _limited(receive: Receive) -> Receive:
    """Returns a reader of a request's body that ends the request where the body is too large."""
    taken = 0

    async def limited() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        return {"type": "http.disconnect"} if taken > MOST_BODY else message

    return limited
