"""Waiting for what is away: a store, a target, Spark's executors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from kainite.base.errors import KainiteError
from kainite.base.logs import event

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0


def pause_after(failures: int) -> float:
    """Seconds to wait after so many failures in a row, at least one: doubling, up to a limit."""
    return float(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(failures - 1, 20)))


def patiently(act: Callable[[], T], stop: threading.Event) -> T:
    """Call ``act`` until it succeeds; errors that are not ``retryable`` are raised at once.

    Raises:
        KainiteError: the latest error, when ``stop`` was set meanwhile.
    """
    failures = 0
    while True:
        try:
            return act()
        except KainiteError as error:
            failures += 1
            pause = pause_after(failures)
            if not error.retryable:
                raise
            event(_LOG, logging.WARNING, "waiting", cause=error, pause=pause)
            if stop.wait(pause):
                raise
