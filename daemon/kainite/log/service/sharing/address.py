"""The address of a log's owner, as HEAD names it.

::

    10.0.0.7:7070                                     any host that reaches it may connect
    127.0.0.1:40123@3f2c9b… net:[4026531840]          a loopback address, and the network stack that it belongs to

A loopback address means another listener on each host and in each container. So it carries the name of its network
stack (:func:`kainite.base.process_identity.network_stack`), and only processes of the same stack connect to it, or take
a refused connection for evidence that the owner is gone.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from kainite.base.process_identity import network_stack

MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Address:
    """Where an owner listens.

    Attributes:
        host: a name, or an address as text.
        port: the TCP port.
        stack: of a loopback address the network stack that it belongs to; else empty.
    """

    host: str
    port: int
    stack: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def as_text(self) -> str:
        """Returns the address as :func:`from_text` reads it."""
        return f"{self}@{self.stack}" if self.stack else str(self)

    @property
    def is_reachable(self) -> bool:
        """Returns whether the address means the owner's listener here."""
        if is_loopback(self.host):
            return bool(self.stack) and self.stack == network_stack()
        return True


def of_listener(host: str, port: int) -> Address:
    """Returns the address of a listener of this process."""
    return Address(host, port, network_stack() if is_loopback(host) else "")


def from_text(text: str) -> Address | None:
    """Returns the address that a text has; None for an empty text and for one of another form."""
    place, _, stack = text.partition("@")
    host, colon, port = place.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) <= MAX_PORT):
        return None
    return Address(host, int(port), stack)


def is_loopback(host: str) -> bool:
    """Returns whether a host, as it stands in an address, is this host itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
