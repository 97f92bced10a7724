"""Says whether a source's server is away: whether anything greets whoever connects. No password is needed."""

from __future__ import annotations

import socket
from contextlib import suppress

from kainite.targets.mariadb.address import server_of

_LIMIT_S = 10.0


def is_away(url: str) -> bool:
    """Returns whether the source's server takes no connections at this moment, which nobody has to mend in Kainite.

    A server that refuses this user or database, or has no connection left, is there: it says so.
    """
    with suppress(ValueError):
        server = server_of(url)
        try:
            with socket.socket(socket.AF_UNIX) if server.unix_socket else _tcp(server.host, server.port) as probe:
                probe.settimeout(_LIMIT_S)
                if server.unix_socket:
                    probe.connect(server.unix_socket)
                return not probe.recv(1)
        except OSError:
            return True
    return False


def _tcp(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), _LIMIT_S)
