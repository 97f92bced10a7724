"""Where this process listens for the log's clients, who may connect, and as whom this process connects to others."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Final

from kainite.base.address import Address
from kainite.peers.connection.introduction import Introduction, Secrets, read_secrets
from kainite.peers.tls import client_context, owner_context
from kainite.settings import ServiceSettings

LOOPBACK: Final = Address("127.0.0.1", 0)


@dataclass(frozen=True, slots=True)
class Access:
    """The settings of the service, with the files that they name read.

    Attributes:
        listen: the host and port to listen on; port 0 means any free port.
        advertise: the address that others connect to; None means the address of ``listen``.
        owner_tls, client_tls: this process's TLS contexts as an owner and as a client; None means that nothing is
            encrypted.
        secrets: the users that may connect.
        user, secret: the user as whom this process connects, and the user's secret; empty where no user is set.
    """

    listen: Address = LOOPBACK
    advertise: Address | None = None
    owner_tls: ssl.SSLContext | None = None
    client_tls: ssl.SSLContext | None = None
    secrets: Secrets = field(default_factory=Secrets)
    user: str = ""
    secret: str = field(default="", repr=False)

    def introduce(self, name: str) -> Introduction:
        """Returns the introduction of a program called ``name``, as this process's user."""
        return Introduction(name, self.user, self.secret)


def access_of(settings: ServiceSettings) -> Access:
    """Returns the access that the settings describe.

    Raises:
        SettingsError: a file that the settings name cannot be used.
    """
    secrets = read_secrets(settings.secret_file) if settings.secret_file is not None else None
    user, secret = next(iter(secrets.items())) if secrets else ("", "")
    return Access(
        settings.listen or LOOPBACK,
        settings.advertise,
        owner_context(settings),
        client_context(settings),
        Secrets(secrets),
        user,
        secret,
    )
