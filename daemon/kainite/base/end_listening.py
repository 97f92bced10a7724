"""Ends listening so that no connection is lost between the kernel and its protocol.

asyncio takes a connection in three turns of the loop: it accepts the socket, makes a transport, and calls the
protocol's ``connection_made``. If the server is closed after the first of them, Python 3.11's transport fails with an
AssertionError in a task that nobody awaits, and the socket stays open until the garbage collector finds it. Here the
server accepts nothing more at first, and is closed when each connection that it has accepted is known to its protocol,
which then closes it. Connections that the kernel still holds are reset.
"""

from __future__ import annotations

import asyncio
from typing import Final

TURNS: Final = 3
"""Turns of the loop from an accepted socket to ``connection_made``, and one more: the next turn may accept, too."""


async def end_listening(server: asyncio.Server) -> None:
    """Accepts nothing more, waits until what was accepted is with its protocol, and closes the server's sockets.

    It may be cancelled: whoever closes the connections behind it does so in any case.
    """
    loop = asyncio.get_running_loop()
    try:
        for listening in server.sockets:
            loop.remove_reader(listening.fileno())
        for _ in range(TURNS):
            await asyncio.sleep(0)
    finally:
        server.close()
