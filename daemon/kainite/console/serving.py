"""Opens the console's port, and serves until it is interrupted; bounds connections in number and in time.

=========================  ==========================================================================================
who                        bound
=========================  ==========================================================================================
too many connections       :data:`MOST_CONNECTIONS`; one more cuts off the oldest one that has no request under way
a connection that asks     is cut off where for :data:`SILENT_S` nothing about it has changed: no whole request has
slowly, or reads slowly    come, or its answer is not taken
a large request line       16 KiB for all headers; :data:`~kainite.console.guard.MOST_BODY` for a form
=========================  ==========================================================================================
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from kainite.base.address import Address
from kainite.base.errors import SettingsError
from kainite.base.logs import event
from kainite.console.access import ConsoleAccess
from kainite.console.guard import Guard
from kainite.console.observed import ObservedApplication
from kainite.console.pages.frame import PageFrame
from kainite.console.secrets import read_hashed_secrets
from kainite.console.sessions import Sessions
from kainite.console.site import console_site
from kainite.settings import ConsoleSettings, Settings

if TYPE_CHECKING:
    from kainite.console.oidc_login import OidcLogin

logger = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 200
SILENT_S: Final = 15.0
_MOST_HEADERS: Final = 16 * 1024
_SWEEP_S: Final = 1.0


def serve(applications: Sequence[tuple[Settings, Path]], ready: Callable[[str], object]) -> None:
    """Serves the console until SIGINT or SIGTERM.

    Args:
        applications: the settings and the file of each; the first one's settings are the console's.
        ready: called with the console's address when it listens.

    Raises:
        SettingsError: the address cannot be listened on, a file of the console's cannot be used, or two applications
            have one name.
    """
    settings = applications[0][0].console
    users = read_hashed_secrets(settings.users_file) if settings.users_file is not None else {}
    tls, login = _tls(settings), _login(settings)
    observed = [ObservedApplication(*each) for each in applications]
    if len({each.name for each in observed}) < len(observed):
        raise SettingsError("two of the files have the same applicationName")
    console = console_site(PageFrame(observed, settings))
    with contextlib.closing(_listening(settings.listen)) as port:
        secure = tls is not None
        guard = Guard(console, ConsoleAccess(settings), users, settings.prefix, secure=secure, login=login)
        address = Address(settings.listen.host, port.getsockname()[1])
        url = f"http{'s' if secure else ''}://{address}{settings.prefix}/"
        event(logger, logging.INFO, "console ready", address=str(address), users=len(users))
        ready(url)
        asyncio.run(serve_on(guard, port, tls, Connections()))


async def serve_on(app: ASGIApp, port: socket.socket, tls: ssl.SSLContext | None, connections: Connections) -> None:
    """Serves an application on a socket that listens, until a signal or a cancellation ends it."""
    config = uvicorn.Config(
        app,
        http=connections.accepted,  # type: ignore[arg-type]  # whatever makes a protocol will do
        ws="none",
        lifespan="off",
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=_MOST_HEADERS,
        timeout_keep_alive=20,
        timeout_graceful_shutdown=2,
        ssl_context_factory=(lambda *_: tls) if tls is not None else None,
    )
    sweeper = asyncio.create_task(connections.sweep())
    try:
        await uvicorn.Server(config).serve(sockets=[port])
    finally:
        sweeper.cancel()


class Connections:
    """The open connections, and since when nothing has changed about each."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[H11Protocol, tuple[object, float]] = {}

    def accepted(self, **arguments: Any) -> H11Protocol:
        """Returns the protocol of a new connection; makes room for it."""
        protocol = H11Protocol(**arguments)
        self._forget_closed()
        if len(self._seen) >= MOST_CONNECTIONS:
            idle = [each for each in self._seen if not _is_busy(each)]
            _cut((idle or list(self._seen))[0])
        self._seen[protocol] = (None, self._clock())
        return protocol

    async def sweep(self) -> None:
        """Cuts off, again and again, connections about which nothing changes."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            self._forget_closed()
            now = self._clock()
            for protocol, (cycle, since) in list(self._seen.items()):
                if protocol.cycle is not cycle:
                    self._seen[protocol] = (protocol.cycle, now)
                elif now - since >= SILENT_S and (protocol.cycle is None or _is_busy(protocol)):
                    _cut(protocol)

    def _forget_closed(self) -> None:
        # A connection is not open yet when its protocol is made.
        for protocol in [each for each in self._seen if each.transport is not None and each.transport.is_closing()]:
            del self._seen[protocol]


def _is_busy(protocol: H11Protocol) -> bool:
    return protocol.cycle is not None and not protocol.cycle.response_complete


def _cut(protocol: H11Protocol) -> None:
    if protocol.transport is not None:
        protocol.transport.abort()


def _listening(listen: Address) -> socket.socket:
    try:
        found = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen(128)
        except OSError:
            made.close()
            raise
    except OSError as error:
        raise SettingsError(
            f"consoleListen: cannot listen on {listen}: {error.strerror or error}; choose another port or host"
        ) from error
    return made


def _login(settings: ConsoleSettings) -> OidcLogin | None:
    """Returns the login by OpenID Connect; its libraries take half a second to load, so only where it is set."""
    if settings.oidc_issuer is None:
        return None
    from kainite.console.oidc import OidcProvider
    from kainite.console.oidc_login import OidcLogin

    secure = (settings.oidc_redirect or "").startswith("https:")
    return OidcLogin(OidcProvider(settings), Sessions(), settings.prefix, secure=secure)


def _tls(settings: ConsoleSettings) -> ssl.SSLContext | None:
    if settings.certificate_file is None or settings.key_file is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.certificate_file, settings.key_file, password=lambda: "")
    except OSError as error:
        files = f"consoleCertificateFile {settings.certificate_file}, consoleKeyFile {settings.key_file}"
        raise SettingsError(f"{files}: {error.strerror or error}") from error
    return context
