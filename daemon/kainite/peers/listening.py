"""Opens a port of this process as its settings say, and tells at which address others reach it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from kainite.peers.access import Access
from kainite.peers.address import OwnerAddress, of_listener
from kainite.peers.connection.codec import M
from kainite.peers.connection.core import Limits
from kainite.peers.server import serving
from kainite.peers.service import PeerService


@contextlib.asynccontextmanager
async def listening(
    service: PeerService[M], access: Access, limits: Limits | None = None, key: str = "logListen"
) -> AsyncIterator[OwnerAddress]:
    """Serves on a port until the end; yields the address at which others reach it.

    Args:
        service: answers the peers' messages.
        access: the address to listen on, and who may connect.
        limits: bounds on a peer's messages and times.
        key: the settings' key of the address to listen on, for the error.

    Raises:
        SettingsError: the port cannot be opened.
    """
    tls, secrets = access.owner_tls, access.secrets
    async with serving(service, access.listen, tls=tls, secrets=secrets, limits=limits, key=key) as server:
        reached = access.advertise or server.address
        yield of_listener(reached.host, reached.port or server.address.port)
