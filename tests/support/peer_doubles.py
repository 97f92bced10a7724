"""A peer of the log's owner that keeps what it hears."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from kainite.peers.connection.introduction import Guest
from kainite.peers.messages import Message
from kainite.peers.rights import OF_THE_LOG


class HeardPeer:
    """Implements :class:`~kainite.peers.service.Peer` without a connection."""

    version = 1
    guest = Guest("everybody", OF_THE_LOG)
    place = "test"

    def __init__(self) -> None:
        self.said: asyncio.Queue[Message] = asyncio.Queue()
        self.ended: list[str] = []
        """Why the connection was ended; empty texts for a hang-up."""

    async def send(self, *messages: Message) -> None:
        for message in messages:
            self.said.put_nowait(message)

    def allow_long(self) -> None:
        pass

    def say_alive(self) -> None:
        pass

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(work)

    def hang_up(self) -> None:
        self.ended.append("")

    def cut(self, why: str) -> None:
        self.ended.append(why)
