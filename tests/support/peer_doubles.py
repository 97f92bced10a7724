"""A peer of the log's owner that keeps what it hears."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from kainite.peers.messages import Message


class HeardPeer:
    """Implements :class:`~kainite.peers.service.Peer` without a connection."""

    version = 1

    def __init__(self) -> None:
        self.said: asyncio.Queue[Message] = asyncio.Queue()
        self.ended: list[str] = []
        """Why the connection was ended; empty texts for a hang-up."""

    async def send(self, *messages: Message) -> None:
        for message in messages:
            self.said.put_nowait(message)

    def say_alive(self) -> None:
        pass

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(work)

    def hang_up(self) -> None:
        self.ended.append("")

    def cut(self, why: str) -> None:
        self.ended.append(why)
