"""What answers the messages of peers, and what a peer is to it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from kainite.peers.connection.codec import Codec, M, M_contra


class Peer(Protocol[M_contra]):
    """A client, as a service sees it."""

    @property
    def version(self) -> int:
        """Returns the version that is spoken with it."""

    async def send(self, *messages: M_contra) -> None:
        """Sends messages in order; waits while the peer takes none.

        Raises:
            ConnectionError: the peer is gone, or was cut because it takes none.
        """

    def say_alive(self) -> None:
        """Sends a frame that says that this side is alive."""

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Does work beside the peer's messages, until the connection ends; the work's end is the connection's.

        A KainiteError cuts the peer.
        """

    def hang_up(self) -> None:
        """Ends the connection when what was sent has left."""

    def cut(self, why: str) -> None:
        """Ends the connection at once; ``why`` goes into the log."""


class PeerService(Protocol[M]):
    """Answers messages. All methods are called on the server's event loop."""

    @property
    def codec(self) -> Codec[M]:
        """Returns the protocol that is spoken."""

    async def take(self, peer: Peer[M], message: M) -> Coroutine[Any, Any, None] | None:
        """Takes a message; the peer's next one comes when this returns.

        Returns:
            What is left to do for the message, beside the peer's next ones; the message's credit comes back after it.

        Raises:
            KainiteError: the peer is to be cut. What is left to do may raise it as well.
        """

    def left(self, peer: Peer[M]) -> None:
        """Hears that a peer is gone."""
