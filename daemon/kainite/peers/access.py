"""Where this process listens for the log's clients, who may connect, and as whom this process connects to others.

Nobody connects without a key, on loopback neither. Where the settings name no file of users, the key is the *token*
that the owner writes into HEAD with each mount: who may read the log's table knows it, and nobody else does. The file
of users takes the token's place, so that rights can differ.

=======================================  =============================================================================
happens                                  who has a token
=======================================  =============================================================================
an owner mounts                          makes a token before it claims, so that who reads HEAD at once is let in;
                                         the token of its mount before is worth nothing from then on
an owner is overtaken, and goes on       still lets in who has read the HEAD before, and tells it where the owner is; a
                                         process that was overtaken cannot make anything durable
                                         (:mod:`kainite.owner.mount`)
a claim fails, or its answer is lost     nothing is served under its token; the next claim has another one
a process dies, and another one takes    the other one does not know the token, and no member tells it anything
its port
=======================================  =============================================================================
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kainite.base.address import Address
from kainite.peers.connection.introduction import Doorkeeper, Introduction, Key, Keys
from kainite.peers.held_files import HeldFiles
from kainite.peers.users import TOKEN
from kainite.settings import ServiceSettings

LOOPBACK: Final = Address("127.0.0.1", 0)

LOG_USER: Final = f"{TOKEN}log"
"""As whom processes connect to the log's owner that have its token."""


def application_user(number: int) -> str:
    """Returns as whom programs connect that have the token of a partition of applications."""
    return f"{TOKEN}application/{number}"


@dataclass(frozen=True, slots=True)
class Access:
    """The settings of the service, with what the files that they name hold at present.

    Attributes:
        listen: the host and port to listen on; port 0 means any free port.
        advertise: the address that others connect to; None means the address of ``listen``.
        held: what the files hold, which may change while the process runs.
    """

    listen: Address = LOOPBACK
    advertise: Address | None = None
    held: HeldFiles = field(default_factory=HeldFiles, repr=False, compare=False)

    @property
    def users(self) -> Mapping[str, Key] | None:
        """Returns the users that may connect, in the file's order; None without a file: then HEAD has the key."""
        return self.held.now.users

    def owner_tls(self) -> ssl.SSLContext | None:
        """Returns this process's TLS context as an owner; None means that nothing is encrypted."""
        return self.held.now.owner_tls

    def client_tls(self) -> ssl.SSLContext | None:
        """Returns this process's TLS context as a client; None means that nothing is encrypted."""
        return self.held.now.client_tls

    @property
    def has_tokens(self) -> bool:
        """Returns whether who may connect is told by HEAD."""
        return self.users is None

    def door(self, tokens: Keys) -> Doorkeeper:
        """Returns who lets peers in.

        Args:
            tokens: returns the tokens that are worth something now; they count where there is no file of users.
        """
        return Doorkeeper(tokens) if self.has_tokens else Doorkeeper(self._key_of, revokes=True)

    def introduce(self, name: str, user: str, token: str) -> Introduction:
        """Returns the introduction of a program to an owner.

        Args:
            name: the program's name.
            user, token: as whom the program connects with the owner's token; empty where HEAD has none.
        """
        if token:
            return Introduction(name, user, token)
        own, key = next(iter((self.users or {}).items()), ("", Key("", frozenset())))
        return Introduction(name, own, key.secret)

    def _key_of(self, user: str) -> Key | None:
        return (self.users or {}).get(user)


def access_of(settings: ServiceSettings) -> Access:
    """Returns the access that the settings describe.

    Raises:
        SettingsError: a file that the settings name cannot be used.
    """
    return Access(settings.listen or LOOPBACK, settings.advertise, HeldFiles.of(settings))
