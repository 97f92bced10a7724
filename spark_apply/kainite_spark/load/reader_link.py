"""A connection between the driver of a load and one reader of its snapshot.

A reader listens at a socket in the snapshot's folder (:mod:`kainite_spark.load.snapshot_reader`). Requests and answers
are lines; while a reader works it sends signs of life.

=============  ======================================================  ===============================================
the reader is  told by                                                 the driver
=============  ======================================================  ===============================================
there          the connection, and an answer or a sign of life         waits
gone           a connection that is refused, or ends                   raises OSError; other readers go on
frozen         nothing for as long as the link waits                   kills it, which gives back what it holds in
                                                                       both databases, and raises OSError
=============  ======================================================  ===============================================
"""

from __future__ import annotations

import os
import signal
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import msgspec

from kainite_spark.load.snapshot_reader import ReaderAnswer, ReaderRequest


class ReaderLink:
    """A connection with a reader; raises OSError where the reader is gone.

    Args:
        path: where it listens.
        longest: seconds without a sign of life after which it is given up.
    """

    def __init__(self, path: Path, longest: float) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.settimeout(longest)
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise
        self._lines = self._socket.makefile("rb")

    def send(self, request: ReaderRequest) -> None:
        """Sends a request."""
        self._socket.sendall(msgspec.json.encode(request) + b"\n")

    def receive(self) -> ReaderAnswer:
        """Waits for the answer, as long as there are signs of life."""
        while line := self._lines.readline():
            answer = msgspec.json.decode(line, type=ReaderAnswer)
            if not answer.works:
                return answer
        raise ConnectionResetError("the reader is gone")

    def ask(self, request: ReaderRequest) -> ReaderAnswer:
        """Sends a request and waits for the answer."""
        self.send(request)
        try:
            return self.receive()
        except TimeoutError:
            self._kill()
            raise TimeoutError(f"it said nothing for {self._socket.gettimeout():g} s, so it was ended") from None

    def _kill(self) -> None:
        """Kills the reader, which is frozen, and lets nobody come to it any more."""
        self._path.unlink(missing_ok=True)
        number = getattr(socket, "SO_PEERCRED", None)
        if number is not None:  # Linux alone; elsewhere it is left to itself
            pid, _, _ = struct.unpack("3i", self._socket.getsockopt(socket.SOL_SOCKET, number, struct.calcsize("3i")))
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


@contextmanager
def reader_links(folder: Path, longest: float) -> Iterator[list[ReaderLink]]:
    """Connects to the readers of a snapshot's folder that live, each with a link that waits ``longest`` seconds."""
    with ExitStack() as stack:
        links: list[ReaderLink] = []
        for path in sorted(folder.glob("*.sock")):
            with suppress(OSError):
                links.append(stack.enter_context(closing(ReaderLink(path, longest))))
        yield links
