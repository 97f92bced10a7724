"""Writes to a pipe whose reader may take nothing for a long time.

``kainite extract`` takes no more than it can put on the stream. Meanwhile this process must tell the source that it
lives: PostgreSQL cuts a reader that has been silent for ``wal_sender_timeout``, and sends the whole transaction again.

States: so many bytes are held, at most :data:`HELD_BYTES` and one message. What is held is lost in a crash; the source
sends it again.
"""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Callable
from typing import Final

HELD_BYTES: Final = 64 * 1024
EVERY_S: Final = 1.0


class PatientOutput:
    """Writes to a file descriptor.

    Args:
        descriptor: where to write. A pipe becomes non-blocking.
        meanwhile: called each ``every`` seconds while the pipe is full.
        every: seconds.
    """

    def __init__(self, descriptor: int, meanwhile: Callable[[], None], every: float = EVERY_S) -> None:
        self._descriptor = descriptor
        self._meanwhile = meanwhile
        self._every = every
        self._held = bytearray()
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            os.set_blocking(descriptor, False)

    def write(self, data: bytes) -> None:
        """Writes data, or holds it until more has come.

        Raises:
            BrokenPipeError: nobody reads the pipe any more.
        """
        self._held += data
        if len(self._held) >= HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes what is held; returns when all is written.

        Raises:
            BrokenPipeError: nobody reads the pipe any more.
        """
        left = memoryview(bytes(self._held))
        self._held.clear()
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                self._wait()

    def _wait(self) -> None:
        while not select.select([], [self._descriptor], [], self._every)[1]:
            self._meanwhile()
