"""Limits how long a block may wait, also in a task that was cancelled and still cleans up.

``asyncio.timeout`` fails there up to Python 3.11.2, which Debian 12 ships (CPython's issue 102780): a block in a task
that was cancelled before raises CancelledError at the end of its time in place of TimeoutError. A child that outlived
its grace was therefore killed at once, without SIGTERM. All of Kainite uses this module, and ruff refuses
``asyncio.timeout``.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class TimeLimit:
    """Ends a block at an event loop's time, with ``TimeoutError``; made by :func:`time_limit`."""

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._cancellations = 0

    async def __aenter__(self) -> None:
        self._cancellations = _cancellations()
        await self._limit.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._limit.__aexit__(kind, error, traceback)
        # Python up to 3.11.2 comes here when the task had been cancelled before. One more cancellation than then is
        # somebody's that came during the block, and goes on as one.
        cancelled = isinstance(error, asyncio.CancelledError)
        if cancelled and self._limit.expired() and _cancellations() <= self._cancellations:
            raise TimeoutError from error


def time_limit(seconds: float | None) -> TimeLimit:
    """Returns a context manager that ends its block after ``seconds``, or never for None.

    The block raises ``TimeoutError`` when the time is up.
    """
    return TimeLimit(asyncio.timeout(seconds))  # noqa: TID251 - the one place that may


def time_limit_at(when: float) -> TimeLimit:
    """Returns a context manager that ends its block at the event loop's time ``when``, with ``TimeoutError``."""
    return TimeLimit(asyncio.timeout_at(when))  # noqa: TID251 - the one place that may


def _cancellations() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()
