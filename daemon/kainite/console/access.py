"""Who may look at the console, and who may act: decided for each request, from its headers and its peer. Pure.

The checks, in their order; the first that fails refuses the request:

===============  =====================================================================================================
check            against
===============  =====================================================================================================
peer             a client that goes past the proxy and sends the proxy's header itself
Host             DNS rebinding: a page elsewhere whose name is made to mean this console
origin           other sites' forms, scripts and images: ``Sec-Fetch-Site``, and ``Origin`` for what changes anything
user             who is nobody: the proxy's header, HTTP's basic authentication, or a session (kainite.console.sessions)
operator         who may look and not act: POST alone
===============  =====================================================================================================

There are no cookies and no tokens, but for who logs in by OpenID Connect: nothing of a session can be stolen, and a
restart breaks no open page.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kainite.settings import ConsoleSettings

LOCAL: Final = "local"
"""The user where nobody logs in."""

_READING: Final = frozenset({"GET", "HEAD"})
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_ANY: Final = {"0.0.0.0", "::"}


@dataclass(frozen=True, slots=True)
class ConsoleRequest:
    """What of a request decides who may make it.

    Attributes:
        method: GET, HEAD, POST …
        peer: the address of the connection's other end; empty where it is not known.
        headers: the headers by their lower-case names; of one that came several times all values, joined by commas.
    """

    method: str
    peer: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RefusedRequest:
    """Why a request is refused: an HTTP status, and a sentence for the page."""

    status: int
    why: str


@dataclass(frozen=True, slots=True)
class Login:
    """A name and a secret that are to be compared."""

    user: str
    secret: str


@dataclass(frozen=True, slots=True)
class SessionNeeded:
    """Whose request it is, its cookies say."""

    cookies: str


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks.

    Attributes:
        user: the name.
        may_act: whether ``consoleOperators`` has the name.
        may_log_out: whether there is a session to end.
    """

    user: str
    may_act: bool
    may_log_out: bool = False


class ConsoleAccess:
    """The rules that the settings make.

    Args:
        settings: the console's.
    """

    def __init__(self, settings: ConsoleSettings) -> None:
        self._settings = settings
        self._proxies = tuple(ipaddress.ip_network(proxy) for proxy in settings.proxies)
        self._hosts = {*_LOOPBACK, settings.listen.host.lower(), *(host.lower() for host in settings.hosts)} - _ANY

    def admit(self, request: ConsoleRequest) -> RefusedRequest | Login | SessionNeeded | Visitor:
        """Returns why a request is refused, or who makes it; a :class:`Login` is to be compared first."""
        refusal = self._of_peer(request) or self._of_host(request) or _of_origin(request)
        if refusal is not None:
            return refusal
        return self._user(request)

    def visitor(self, user: str) -> Visitor:
        """Returns a user who is known now."""
        return Visitor(user, user in self._settings.operators, self._settings.oidc_issuer is not None)

    def may(self, request: ConsoleRequest, visitor: Visitor) -> RefusedRequest | None:
        """Returns why a visitor may not make a request; None where they may."""
        if request.method in _READING or visitor.may_act:
            return None
        return RefusedRequest(403, f"{visitor.user} may look and not act: consoleOperators names who may act")

    def _of_peer(self, request: ConsoleRequest) -> RefusedRequest | None:
        if not self._proxies:
            return None
        try:
            peer = ipaddress.ip_address(request.peer)
        except ValueError:
            return RefusedRequest(403, "only the proxy may connect (consoleProxies)")
        if any(peer in network for network in self._proxies):
            return None
        return RefusedRequest(403, "only the proxy may connect (consoleProxies)")

    def _of_host(self, request: ConsoleRequest) -> RefusedRequest | None:
        if _name_of(request.headers.get("host", "")) in self._hosts:
            return None
        return RefusedRequest(421, "the console does not answer for this name; consoleHosts has the names of its own")

    def _user(self, request: ConsoleRequest) -> RefusedRequest | Login | SessionNeeded | Visitor:
        header = self._settings.user_header
        if header is not None:
            user = request.headers.get(header.lower(), "").strip()
            if user and "," not in user:
                return self.visitor(user)
            return RefusedRequest(401, f"the proxy names no user in {header}")
        if self._settings.oidc_issuer is not None:
            return SessionNeeded(request.headers.get("cookie", ""))
        if self._settings.users_file is None:
            return self.visitor(LOCAL)
        return _basic(request.headers.get("authorization", "")) or RefusedRequest(401, "log in")


def _name_of(host: str) -> str:
    """Returns the name in a header Host, without brackets and port."""
    name = host.lower().rpartition("]")[0].removeprefix("[") if host.startswith("[") else host.lower().partition(":")[0]
    return name.rstrip(".")


def _of_origin(request: ConsoleRequest) -> RefusedRequest | None:
    """Refuses what another site's page made the browser send."""
    site, mode = request.headers.get("sec-fetch-site"), request.headers.get("sec-fetch-mode")
    if request.method in _READING:
        # A link on another page may lead here; what embeds or fetches the console may not.
        strange = site in ("cross-site", "same-site") and mode != "navigate"
        return RefusedRequest(403, "another site's page asked for this") if strange else None
    if request.method != "POST":
        return RefusedRequest(405, "only GET, HEAD and POST")
    if site is not None and site != "same-origin":
        return RefusedRequest(403, "another site's page sent this")
    origin = request.headers.get("origin")
    if origin is None:
        return None if site == "same-origin" else RefusedRequest(403, "no browser's page sent this; use the command")
    if _same(origin, request.headers.get("host", "")):
        return None
    return RefusedRequest(403, "another site's page sent this")


def _same(origin: str, host: str) -> bool:
    scheme, separator, rest = origin.lower().partition("://")
    return bool(separator) and scheme in ("http", "https") and rest == host.lower()


def _basic(header: str) -> Login | None:
    kind, _, encoded = header.partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        user, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return Login(user, secret) if colon else None
