"""When the program of a duty is started again after its end. Without I/O.

An end with status 0 is a clean one; any other status, a signal, a start that took too long and a program that could
not be started are failures. ``error`` needs so many failures within the window; an operator clears it. The pause
grows with the failures since the program last ran for a window without one, so that a program which works for an hour
and then fails is back at once.

This is the worker's own memory: a worker that dies forgets it, and the next one counts from 0.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto

from kainite.base.retry import Backoff
from kainite.duties.model.records import Restart, Work


class Verdict(Enum):
    """What follows from the end of a program."""

    AGAIN = auto()
    DONE = auto()
    ERROR = auto()


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do after an end; the program starts again at ``due`` if it does."""

    verdict: Verdict
    due: float = 0.0


class Restarts:
    """Counts the failures of one duty's program on this worker."""

    def __init__(self) -> None:
        self._failures: deque[float] = deque()

    def ended(self, work: Work, now: float, *, clean: bool) -> Decision:
        """Counts an end; returns what to do.

        Args:
            work: the duty's.
            now: seconds, by a clock that never runs backwards.
            clean: the program ended with status 0.
        """
        while self._failures and now - self._failures[0] >= work.window:
            self._failures.popleft()
        if clean:
            again = work.restart is Restart.ALWAYS
            return Decision(Verdict.AGAIN, now + work.backoff) if again else Decision(Verdict.DONE)
        self._failures.append(now)
        if work.restart is Restart.NEVER or len(self._failures) >= work.tries:
            return Decision(Verdict.ERROR)
        pause = Backoff.doubling(work.backoff, work.backoff_max).after(len(self._failures))
        return Decision(Verdict.AGAIN, now + pause)
