"""One budget of memory for the messages of all peers of a port; waits are first come, first served. No I/O.

A peer takes the bytes of a message out of the budget, and gives them back when the message is answered. For a message
longer than LONG it takes them when the header has come, before any more of it is read; so unfinished messages of many
peers together take no more memory than the budget, whatever their headers announce. A peer that waits for the budget is
not read: its own sending waits.

=====================================  =================================================================================
a message                              waits
=====================================  =================================================================================
of at most TINY bytes                  never: positions, reports of few shards, marks. The number of messages under way
                                       bounds them
longer                                 until there is room and nobody is before it
longer than the whole budget           until nothing else is under way, so that it passes in the end
=====================================  =================================================================================

Invariant: what is taken stays within the budget, apart from tiny messages, or is one message. A connection that ends
gives back what it has taken, and leaves the line.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from kainite.peers.connection.credit import Credit

TINY: Final = 1024
LONG: Final = 64 * 1024

PEERS_BYTES: Final = 512 * 2**20
"""The budget of a port: one message of the greatest length, and some hundred of the usual ones beside it."""


class ByteBudget:
    """The budget of one port.

    Args:
        most: how many bytes the messages of all peers may have together.
    """

    def __init__(self, most: int = PEERS_BYTES) -> None:
        self._credit = Credit(most)
        self._line: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def taken(self) -> int:
        """Returns how many bytes are taken."""
        return self._credit.bytes

    async def take(self, size: int) -> None:
        """Takes bytes, and waits for them where they are more than TINY; a cancelled wait takes nothing."""
        if size <= TINY or (not self._line and self._credit.has_room(size)):
            self._credit.take(size)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give(size)  # its turn came in the moment in which it was given up
            self._serve()
            raise

    def give(self, size: int) -> None:
        """Gives bytes back, and serves who waits."""
        self._credit.give(size)
        self._serve()

    def _serve(self) -> None:
        while self._line:
            size, turn = self._line[0]
            if not turn.done():
                if not self._credit.has_room(size):
                    return
                self._credit.take(size)
                turn.set_result(None)
            self._line.popleft()
