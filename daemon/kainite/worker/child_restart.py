"""A restart of a shard's child that a person has asked for. Without I/O.

::

    none ──asked──► asked ──the child has ended──► ended ──the next one is ready, or has failed──► none
                    asked while no child is there ───► ended

The child ends as in a crash, and the next one begins at the checkpoint; what it answered and the log has stays there
(:mod:`kainite.worker.call_rules`). But it is no failure: it is not counted, no batch becomes poison by it, no record is
left out, and no pause comes before the next child. A pause that is under way ends.

A shard that is lost or given up meanwhile leaves the request to whoever takes the lease
(:mod:`kainite.leases.table.request`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import KainiteError

TellRestarted = Callable[[bool, str], None]
"""Takes whether the child was restarted, and a sentence about it."""


class ChildRestart:
    """The restart that is under way at one consumer."""

    def __init__(self) -> None:
        self._tell: TellRestarted | None = None
        self._ended = False
        self._before = ""
        self._waiting: asyncio.Future[None] | None = None

    def ask(self, pid: int | None, tell: TellRestarted) -> None:
        """Notes that a restart is asked for.

        Args:
            pid: of the child that is to end; None where none is there.
            tell: is told what has become of it.
        """
        self._tell, self._ended = tell, pid is None
        self._before = f"child {pid} was ended" if pid is not None else "no child was at work"
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def wait(self) -> asyncio.Future[None]:
        """Returns a future that is done when a restart is asked for."""
        self._waiting = asyncio.get_running_loop().create_future()
        return self._waiting

    def takes(self) -> bool:
        """Returns whether the end of a child is this restart, and no failure; notes that it has ended."""
        is_this = self._tell is not None and not self._ended
        self._ended = True
        return is_this

    def begun(self, pid: int, checkpoint: Checkpoint) -> None:
        """Notes that a child is ready; one whose end has been asked for is not the next one yet."""
        if self._ended:
            self._told(f"{self._before}, child {pid} has begun after checkpoint {checkpoint}")

    def failed(self, error: KainiteError) -> None:
        """Notes a failure that is not the restart's own."""
        if self._ended:
            self._told(f"{self._before}, and the next one has failed: {error}")
        self._ended = True  # whatever has failed, the child is gone

    def _told(self, sentence: str) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell(True, sentence)
