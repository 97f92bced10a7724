"""Tells systemd how this process fares, where systemd has started it with ``Type=notify``; elsewhere it tells nobody.

A message is a datagram to the socket that ``NOTIFY_SOCKET`` names: sd_notify(3). What cannot be told is no reason to
fail.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Final

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"

_LONGEST_STATUS: Final = 300


def status(text: str) -> str:
    """Returns the message that sets the line which ``systemctl status`` shows."""
    return f"STATUS={' '.join(text.split())[:_LONGEST_STATUS]}"


def tell(*messages: str) -> None:
    """Sends messages to the service manager, in one datagram."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.setblocking(False)  # a manager that does not read must not hold this process
        # "@" stands for the zero byte of Linux's abstract names.
        sender.sendto("\n".join(messages).encode(), f"\0{address[1:]}" if address[0] == "@" else address)
