"""A TCP address as text: ``host:port``, an IPv6 address in brackets."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

_TEXT = re.compile(r"(?P<host>[^\s:\[\]/@]+|\[[0-9A-Fa-f:.%a-z]+\]):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a program listens.

    Attributes:
        host: a name or an IP address, without brackets.
        port: 0 for any that is free.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Tells whether only programs on the same host reach the address, whatever the host's names mean."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> Address:
    """Returns the address that a text names.

    Raises:
        ValueError: it names none.
    """
    found = _TEXT.fullmatch(text)
    if found is None or int(found["port"]) > 65_535:
        raise ValueError(f"must be host:port, not {text!r}")
    return Address(found["host"].strip("[]"), int(found["port"]))
