"""The address of a log's owner, as HEAD names it.

::

    10.0.0.7:7070                                     any host that reaches it may connect
    127.0.0.1:40123@3f2c9b… net:[4026531840]          a loopback address, and the network stack that it belongs to

A loopback address means another listener on each host and in each container. So it carries the name of its network
stack (:func:`kainite.base.process_identity.network_stack`), and only processes of the same stack connect to it, or take
a refused connection for evidence that the owner is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kainite.base.address import Address, parse_address
from kainite.base.process_identity import network_stack


@dataclass(frozen=True, slots=True)
class OwnerAddress:
    """The address at which an owner listens.

    Attributes:
        host: the host's name, or its address as text.
        port: the TCP port.
        stack: the network stack that a loopback address belongs to; empty for any other address.
        token: the owner's token in HEAD, which is no part of the address's text; empty where HEAD has none.
    """

    host: str
    port: int
    stack: str = ""
    token: str = field(default="", repr=False)

    def __str__(self) -> str:
        return str(Address(self.host, self.port))

    def as_text(self) -> str:
        """Returns the address as :func:`from_text` reads it."""
        return f"{self}@{self.stack}" if self.stack else str(self)

    @property
    def is_reachable(self) -> bool:
        """Returns whether this process reaches the owner's listener under the address."""
        if is_loopback(self.host):
            return bool(self.stack) and self.stack == network_stack()
        return True


def of_listener(host: str, port: int) -> OwnerAddress:
    """Returns the address of a listener of this process."""
    return OwnerAddress(host, port, network_stack() if is_loopback(host) else "")


def from_text(text: str) -> OwnerAddress | None:
    """Returns the address in a text; None for an empty text, and for a text of another form."""
    place, _, stack = text.partition("@")
    try:
        address = parse_address(place)
    except ValueError:
        return None
    return OwnerAddress(address.host, address.port, stack) if address.port else None


def reached_by(text: str, token: str) -> OwnerAddress | None:
    """Returns the address in a text, if this process reaches the owner's listener under it; else None.

    Args:
        text, token: the owner's address and token, as HEAD has them.
    """
    address = from_text(text)
    return replace(address, token=token) if address is not None and address.is_reachable else None


def is_loopback(host: str) -> bool:
    """Returns whether a host, as it stands in an address, is this host itself."""
    return Address(host, 0).is_loopback or host.endswith(".localhost")
