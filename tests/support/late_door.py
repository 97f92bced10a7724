"""An address that refuses connections until a test opens it; then it leads to a server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit


class LateDoor:
    """Holds a free port of the loopback, where nobody listens before :meth:`open`."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self.endpoint = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def open(self, endpoint: str) -> None:
        """Lets everybody through to the server at ``endpoint``, from now on."""
        parts = urlsplit(endpoint)
        self._socket.listen(128)
        self._run(self._let_in, (parts.hostname, parts.port))

    def close(self) -> None:
        """Lets nobody in any more; returns when the guests, whose processes have ended, have left."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        while self._threads:
            self._threads.pop().join()

    def _let_in(self, server: tuple[str, int]) -> None:
        with suppress(OSError):
            while True:
                guest, _ = self._socket.accept()
                self._run(_lead, guest, server)

    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()


def _lead(guest: socket.socket, server: tuple[str, int]) -> None:
    with guest, socket.create_connection(server) as behind:
        back = threading.Thread(target=_forward, args=(behind, guest), daemon=True)
        back.start()
        _forward(guest, behind)
        back.join()


def _forward(giver: socket.socket, taker: socket.socket) -> None:
    with suppress(OSError):
        while data := giver.recv(65536):
            taker.sendall(data)
        taker.shutdown(socket.SHUT_WR)
