"""Waits for a store or a target that is away, and for Spark's executors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from kainite.base.errors import StoppedError
from kainite.base.outage import OutageNotes
from kainite.base.retry import Backoff, retry

T = TypeVar("T")

BACKOFF = Backoff.doubling(0.1, 10.0)

_LOOK_S = 0.05
"""Seconds between two looks whether a stop has come while a call is unanswered."""


def patiently(act: Callable[[], T], stop: threading.Event, what: str = "the log's store or the target") -> T:
    """Calls ``act`` until it succeeds; raises an error that is not ``retryable`` at once.

    Args:
        act: a call that may be repeated.
        stop: ends the wait.
        what: what is waited for; told once, and then once a minute.

    Raises:
        KainiteError: the latest error, if ``stop`` was set meanwhile.
    """
    return retry(act, BACKOFF, wait=stop.wait, failed=OutageNotes(what))


def unless_stopped(act: Callable[[], T], stop: threading.Event, what: str) -> T:
    """Does the same as :func:`patiently`; a stop during a wait is no failure.

    Raises:
        StoppedError: ``stop`` was set meanwhile.
        KainiteError: an error that is not ``retryable``.
    """

    def wait(pause: float) -> None:
        if stop.wait(pause):
            raise StoppedError(f"stopped while waiting for {what}")

    return retry(act, BACKOFF, wait=wait, failed=OutageNotes(what))


def at_the_start(act: Callable[[], T], stop: threading.Event, what: str) -> T:
    """Does the same as :func:`unless_stopped`, and ends at once when ``stop`` is set, also while a call is unanswered.

    Each call is made in a thread of its own, which nobody waits for after a stop.

    Raises:
        StoppedError: ``stop`` was set meanwhile.
        KainiteError: an error that is not ``retryable``.
    """

    def attempt() -> T:
        answer: Future[T] = Future()
        threading.Thread(target=_make, args=(act, answer), name=f"waiting for {what}", daemon=True).start()
        while not answer.done():
            if stop.wait(_LOOK_S):
                raise StoppedError(f"stopped while waiting for {what}")
        return answer.result()

    return unless_stopped(attempt, stop, what)


def _make(act: Callable[[], T], answer: Future[T]) -> None:
    try:
        answer.set_result(act())
    except BaseException as error:
        answer.set_exception(error)
