"""A question that is asked no more often than each so many seconds, however often its answer is wanted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Rarely(Generic[T]):
    """A question with its latest answer. Who wants it while it is asked waits for that answer.

    Args:
        ask: asks, and never raises.
        every: seconds between the end of one question and the next.
        clock: seconds that never run backwards.
    """

    def __init__(self, ask: Callable[[], T], every: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._every = every
        self._clock = clock
        self._lock = threading.Lock()
        self._latest: tuple[T, float] | None = None

    def __call__(self) -> T:
        """Returns the latest answer, or a new one."""
        with self._lock:
            if self._latest is None or self._clock() >= self._latest[1]:
                answer = self._ask()
                self._latest = answer, self._clock() + self._every
            return self._latest[0]
