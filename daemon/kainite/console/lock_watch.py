"""Who waits for locks in the target, asked while somebody looks at it, and not more often than :data:`ASKED_S`.

A target that cannot be asked is not asked again; one that does not answer is, after :data:`AWAY_S`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kainite.base.errors import KainiteError, TargetUnavailableError
from kainite.targets.lock_waits import LockWait, read_lock_waits

ASKED_S: Final = 5.0
AWAY_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class LockWaits:
    """What the target says.

    Attributes:
        waits: the sessions of the apply job that wait, the longest first.
        problem: why that is not known; empty where it is.
    """

    waits: tuple[LockWait, ...] = ()
    problem: str = ""


class LockWatch:
    """The waits of one target.

    Args:
        target: its address; empty for none.
        read: reads the waits.
        clock: seconds that never run backwards.
    """

    def __init__(
        self,
        target: str,
        read: Callable[[str], tuple[LockWait, ...]] = read_lock_waits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target = target
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._known = LockWaits(problem="" if target else "no target is set")
        self._again: float | None = None if target else float("inf")

    def latest(self) -> LockWaits:
        """Returns the waits, some seconds old at most; whoever asks while another one reads waits for that reading."""
        with self._lock:
            if self._again is None or self._clock() >= self._again:
                self._known, pause = self._asked()
                self._again = self._clock() + pause
            return self._known

    def _asked(self) -> tuple[LockWaits, float]:
        try:
            return LockWaits(self._read(self._target)), ASKED_S
        except TargetUnavailableError as error:
            return LockWaits(problem=str(error)), AWAY_S
        except KainiteError as error:
            return LockWaits(problem=str(error)), float("inf")
