"""The interface of a service, which answers the messages of peers, and of a peer as the service sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol

from kainite.peers.connection.codec import Codec, M, M_contra
from kainite.peers.connection.introduction import Guest


class Peer(Protocol[M_contra]):
    """A client, as a service sees it."""

    @property
    def version(self) -> int:
        """Returns the version of the protocol that both sides speak."""

    @property
    def guest(self) -> Guest:
        """Returns as whom the peer was let in."""

    @property
    def place(self) -> str:
        """Returns where the peer connects from."""

    def allow_long(self) -> None:
        """Takes messages of any length that the server's limits allow; until then they are short."""

    async def send(self, *messages: M_contra) -> None:
        """Sends messages in order; waits while the peer reads none.

        Raises:
            ConnectionError: the peer is gone, or was cut because it reads no messages.
        """

    def say_alive(self) -> None:
        """Sends a frame that says that this side is alive."""

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Does work beside the peer's messages, until the connection ends; the connection ends when the work has ended.

        A KainiteError of the work cuts the peer.
        """

    def hang_up(self) -> None:
        """Ends the connection once all sent bytes have left this host."""

    def cut(self, why: str) -> None:
        """Ends the connection at once; ``why`` goes into the log."""


class PeerService(Protocol[M]):
    """Answers messages. All methods are called on the server's event loop."""

    @property
    def codec(self) -> Codec[M]:
        """Returns the protocol that this service speaks."""

    async def take(self, peer: Peer[M], message: M) -> Coroutine[Any, Any, None] | None:
        """Takes a message; the server gives the peer's next message only when this method has returned.

        Returns:
            The rest of the work for the message, which runs beside the peer's next messages; the message's credit comes
            back when the rest is done. None if nothing is left.

        Raises:
            KainiteError: the server must cut the peer. The returned coroutine may raise it as well.
        """

    def left(self, peer: Peer[M]) -> None:
        """Notes that a peer is gone."""
