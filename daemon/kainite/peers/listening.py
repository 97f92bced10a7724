"""Opens a port of this process as its settings say, and tells at which address others reach it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from kainite.observe.meter import SILENT, Meter
from kainite.peers.access import Access
from kainite.peers.address import OwnerAddress, of_listener
from kainite.peers.connection.codec import M
from kainite.peers.connection.core import Limits
from kainite.peers.connection.introduction import Keys
from kainite.peers.server import serving
from kainite.peers.service import PeerService


@contextlib.asynccontextmanager
async def listening(
    service: PeerService[M],
    access: Access,
    tokens: Keys,
    limits: Limits | None = None,
    key: str = "logListen",
    meter: Meter = SILENT,
) -> AsyncIterator[OwnerAddress]:
    """Serves on a port until the end; yields the address at which others reach it.

    Args:
        service: answers the peers' messages.
        access: the address to listen on, and who may connect.
        tokens: returns the tokens by which peers are let in that have read HEAD (:meth:`Access.door`).
        limits: bounds on a peer's messages and times.
        key: the settings' key of the address to listen on, for the error.
        meter: counts the peers that are refused.

    Raises:
        SettingsError: the port cannot be opened.
    """
    opening = serving(
        service, access.listen, door=access.door(tokens), tls=access.owner_tls, limits=limits, key=key, meter=meter
    )
    async with opening as server:
        reached = access.advertise or server.address
        yield of_listener(reached.host, reached.port or server.address.port)
