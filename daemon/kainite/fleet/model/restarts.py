"""When the program of a duty is started again after its end. Without I/O.

An end with status 0 is a clean one; any other status, a signal, a start that took too long and a program that could
not be started are failures. ``error`` needs so many failures within the window; an operator clears it. The pause
grows with the ends within the window, clean ones too, so that a program which works for an hour and then fails is back
at once, and one that ends again and again does not keep its host busy. A policy of a later release starts nothing
again.

This is the worker's own memory: a worker that dies forgets it, and the next one counts from 0.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, auto

from kainite.base.retry import Backoff
from kainite.fleet.model.records import Restart, Work


class Verdict(Enum):
    """What follows from the end of a program."""

    AGAIN = auto()
    DONE = auto()
    ERROR = auto()


@dataclass(frozen=True, slots=True)
class DutyRestart:
    """What to do after an end; the program starts again at ``due`` if it does."""

    verdict: Verdict
    due: float = 0.0


class Restarts:
    """Counts the ends of one duty's program on this worker."""

    def __init__(self) -> None:
        self._ends: deque[tuple[float, bool]] = deque()

    def ended(self, work: Work, now: float, *, clean: bool) -> DutyRestart:
        """Counts an end; returns what to do.

        Args:
            work: the duty's.
            now: seconds, by a clock that never runs backwards.
            clean: the program ended with status 0.
        """
        while self._ends and now - self._ends[0][0] >= work.window:
            self._ends.popleft()
        self._ends.append((now, clean))
        if clean and work.restart is not Restart.ALWAYS:
            return DutyRestart(Verdict.DONE)
        failures = sum(not was_clean for _, was_clean in self._ends)
        if not clean and (work.restart in (Restart.NEVER, Restart.UNKNOWN) or failures >= work.tries):
            return DutyRestart(Verdict.ERROR)
        pause = Backoff.doubling(work.backoff, work.backoff_max).after(len(self._ends))
        return DutyRestart(Verdict.AGAIN, now + pause)
