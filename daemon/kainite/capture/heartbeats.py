"""Writes heartbeats into a source at their pace, whatever kind of database it is.

Heartbeats are an aid: a source that takes none (a standby, a user without the right) is told once on standard error,
and is read all the same.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Protocol

from kainite.base import display
from kainite.base.errors import SourceError
from kainite.base.redaction import redacted


class HeartbeatWriter(Protocol):
    """Writes into one kind of source, over a connection of its own."""

    def write(self) -> None:
        """Writes one heartbeat; connects first where that is needed.

        Raises:
            SourceError: the source takes none.
        """

    def close(self) -> None:
        """Closes the connection; the next heartbeat connects again."""


class Heartbeats:
    """Writes a heartbeat each ``every`` seconds.

    Args:
        writer: the source's.
        every: seconds between two heartbeats.
        clock: seconds, by a clock that never runs backwards.
        complain: takes the reason why there are no heartbeats, once for each reason.
    """

    def __init__(
        self,
        writer: HeartbeatWriter,
        every: float,
        clock: Callable[[], float] = time.monotonic,
        complain: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
    ) -> None:
        self._writer = writer
        self._every = every
        self._clock = clock
        self._complain = complain
        self._complaint = ""
        self._due = 0.0

    def beat(self) -> None:
        """Writes a heartbeat, if one is due; a failure is told, and never raised."""
        if self._clock() < self._due:
            return
        self._due = self._clock() + self._every
        try:
            self._writer.write()
        except SourceError as error:
            self._tell(display.one_line(redacted(f"no heartbeat can be written into the source: {error}")))
        else:
            self._complaint = ""

    def close(self) -> None:
        self._writer.close()

    def _tell(self, complaint: str) -> None:
        if complaint != self._complaint:
            self._complaint = complaint
            self._complain(complaint)
