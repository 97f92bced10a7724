"""Waits at a start for a service that is away, and says so once and then once a minute.

A program that ends when DynamoDB is not reached leaves the waiting to whoever starts it again, who may give up. So
whatever a start needs is asked for again and again, with growing pauses, as long as the error says that the same call
may succeed later; an error that somebody has to mend (credentials, rights, a missing stream) ends the start at once.

State: when the next line is due. A crash leaves nothing behind: each attempt is one that may be repeated.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from kainite.base import service_manager
from kainite.base.errors import StoppedError
from kainite.base.logs import event
from kainite.base.now_and_then import NowAndThen
from kainite.base.retry import AWS_BACKOFF, retry_async

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

TELL_EVERY_S = 60.0
"""The least seconds between two lines about one outage."""


class OutageNotes:
    """Tells of the failures of one call; itself the ``failed`` of :func:`~kainite.base.retry.retry`.

    Args:
        what: what is waited for, for the log and the service manager.
        clock: seconds that only go forward.
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._telling = NowAndThen(TELL_EVERY_S, clock)

    def __call__(self, error: Exception, failures: int, pause: float) -> None:
        """Notes a failure: the first one is told, and then one a minute."""
        if self._telling.is_due():
            event(_LOG, logging.WARNING, "waiting", of=self._what, cause=error, failures=failures)
            service_manager.tell(service_manager.status(f"waiting for {self._what}: {error}"))


async def wait_out(act: Callable[[], T], stop: asyncio.Event, what: str) -> T:
    """Calls ``act``, which blocks, in a thread until it succeeds; returns its answer.

    A call under way when ``stop`` is set is left to its thread: nobody waits for its answer any more. Arguments and
    errors are those of :func:`wait_out_async`.
    """
    return await wait_out_async(partial(asyncio.to_thread, act), stop, what)


async def wait_out_async(act: Callable[[], Awaitable[T]], stop: asyncio.Event, what: str) -> T:
    """Awaits ``act`` until it succeeds; returns its answer.

    Args:
        act: a call that may be repeated.
        stop: ends the wait.
        what: what is waited for.

    Raises:
        StoppedError: ``stop`` was set before the call succeeded.
        Exception: an error of ``act`` that is not ``retryable``.
    """
    asking = asyncio.create_task(retry_async(act, AWS_BACKOFF, failed=OutageNotes(what)))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({asking, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            raise StoppedError(f"stopped while waiting for {what}")
        return asking.result()
    finally:
        asking.cancel()
        stopping.cancel()
