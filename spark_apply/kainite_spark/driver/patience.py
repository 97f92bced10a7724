"""Waits for a store or a target that is away, and for Spark's executors."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from kainite.base.logs import event
from kainite.base.retry import Backoff, retry

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

BACKOFF = Backoff.doubling(0.1, 10.0)


def patiently(act: Callable[[], T], stop: threading.Event) -> T:
    """Calls ``act`` until it succeeds; raises an error that is not ``retryable`` at once.

    Raises:
        KainiteError: the latest error, if ``stop`` was set meanwhile.
    """

    def failed(error: Exception, failures: int, pause: float) -> None:
        event(_LOG, logging.WARNING, "waiting", cause=error, pause=pause)

    return retry(act, BACKOFF, wait=stop.wait, failed=failed)
