"""Where this process listens for the log's clients, who may connect, and who it is where it connects itself."""

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
    """What the settings of the service come to.

    Attributes:
        listen: where to listen; port 0 for any that is free.
        advertise: where others reach that; None: where it listens.
        owner_tls, client_tls: this side of TLS, as an owner and as a client; None: nothing is encrypted.
        secrets: who may connect.
        user, secret: who this process is; empty for nobody in particular.
    """

    listen: Address = LOOPBACK
    advertise: Address | None = None
    owner_tls: ssl.SSLContext | None = None
    client_tls: ssl.SSLContext | None = None
    secrets: Secrets = field(default_factory=Secrets)
    user: str = ""
    secret: str = field(default="", repr=False)

    def introduce(self, name: str) -> Introduction:
        """Returns what a program called ``name`` says of itself."""
        return Introduction(name, self.user, self.secret)


def access_of(settings: ServiceSettings) -> Access:
    """Returns what settings come to.

    Raises:
        SettingsError: a file that they name cannot be used.
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
