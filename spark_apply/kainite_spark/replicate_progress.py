"""Tells how far a load is, while it runs and at its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from kainite.cli.terminal import say, say_json
from kainite.replicate.ends import LoadEnds
from kainite.replicate.load_target import load_session, status_in
from kainite.replicate.status import ReplicaStatus, one_line

TELL_S: Final = 5.0
"""Seconds between two lines of progress."""


class LoadProgress:
    """Tells the progress now and then.

    Args:
        ends: source and target.
        tell: takes the target's status.
    """

    def __init__(self, ends: LoadEnds, tell: Callable[[ReplicaStatus], None]) -> None:
        self._ends = ends
        self._tell = tell
        self._next = time.monotonic() + TELL_S

    def look(self) -> None:
        """Tells the progress if it is time."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + TELL_S
            self._tell(status_at(self._ends))


def status_at(ends: LoadEnds) -> ReplicaStatus:
    """Returns the target's status; raises TargetUnavailableError."""
    with load_session(ends.target, "kainite replicate") as connection:
        return status_in(connection, ends.log_partition)


def tell(status: ReplicaStatus, *, as_json: bool) -> None:
    """Prints a status in one line."""
    if as_json:
        say_json(status.as_json())
    else:
        say(one_line(status))
