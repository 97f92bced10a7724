"""Retries with backoff: the schedule of the pauses, and the loop around a call that may fail.

:class:`Backoff` is a value without a clock or a state: the caller counts its failures in a row. :func:`retry` and
:func:`retry_async` are for callers that only make a call again; a caller that does more between two attempts (reads
the table, drops a connection) keeps its own loop and asks its ``Backoff``.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from kainite.base.errors import KainiteError

T = TypeVar("T")

Retryable: TypeAlias = Callable[[Exception], bool]
"""Tells whether the same call may succeed later."""

Failed: TypeAlias = Callable[[Exception, int, float], object]
"""Takes the error, the number of failures in a row, and the pause before the next attempt in seconds."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The pauses between the attempts at one call.

    Attributes:
        pauses: seconds after the first failure in a row, the second, and so on; the last one repeats.
        jitter: the part of each pause that is random, from 0 (none) to 1 (all): hosts that fail together must not
            come back together.

    Raises:
        ValueError: there are no pauses.
    """

    pauses: tuple[float, ...]
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if not self.pauses:
            raise ValueError("a backoff needs at least one pause")

    @classmethod
    def doubling(cls, base: float, cap: float, jitter: float = 0.0) -> Backoff:
        """Returns pauses that double from ``base`` up to ``cap``, both in seconds."""
        return cls((*_doubled(base, cap), cap if base else 0.0), jitter)

    def after(self, failures: int, uniform: Callable[[], float] = random.random) -> float:
        """Returns the seconds to wait after so many failures in a row.

        Args:
            failures: at least 1.
            uniform: gives a random number from 0 to 1.
        """
        pause = self.pauses[min(failures, len(self.pauses)) - 1]
        return pause * (1 - self.jitter * uniform()) if self.jitter else pause


def _doubled(base: float, cap: float) -> Iterator[float]:
    while 0 < base < cap:
        yield base
        base *= 2


AWS_BACKOFF = Backoff.doubling(0.2, 20.0, jitter=0.5)
"""For AWS services that throttle or do not answer, on top of boto3's own retries within one call."""


def is_retryable(error: Exception) -> bool:
    """Returns whether the error is one of Kainite's that says so itself."""
    return isinstance(error, KainiteError) and error.retryable


def only(*errors: type[Exception]) -> Retryable:
    """Returns a test for errors of these classes."""
    return lambda error: isinstance(error, errors)


def retry(
    call: Callable[[], T],
    backoff: Backoff,
    *,
    wait: Callable[[float], object],
    retryable: Retryable = is_retryable,
    tries: int | None = None,
    failed: Failed | None = None,
) -> T:
    """Makes a call until it succeeds; returns its answer.

    Args:
        call: the call.
        backoff: the pauses.
        wait: waits for so many seconds, as ``time.sleep`` does; a true answer ends the retries, as that of the
            ``wait`` of a ``threading.Event`` that is set.
        retryable: whether an error is worth another attempt; any other is raised at once.
        tries: how many attempts are made in all; None means no limit.
        failed: called at each failure, before the pause.

    Raises:
        Exception: the latest error of ``call``.
    """
    for failures in itertools.count(1):
        try:
            return call()
        except Exception as error:
            if failures == tries or not retryable(error):
                raise
            pause = backoff.after(failures)
            if failed is not None:
                failed(error, failures, pause)
            if wait(pause):
                raise
    raise AssertionError("unreachable: the loop returns or raises")


async def retry_async(
    call: Callable[[], Awaitable[T]],
    backoff: Backoff,
    *,
    retryable: Retryable = is_retryable,
    tries: int | None = None,
    failed: Failed | None = None,
    sleep: Callable[[float], Awaitable[object]] | None = None,
) -> T:
    """Awaits a call until it succeeds; returns its answer.

    Args:
        call, backoff, retryable, tries, failed: those of :func:`retry`, and so are the errors.
        sleep: waits for so many seconds; by default ``asyncio.sleep``.
    """
    import asyncio  # late: commands that look have no use for it, and importing it takes time

    for failures in itertools.count(1):
        try:
            return await call()
        except Exception as error:
            if failures == tries or not retryable(error):
                raise
            pause = backoff.after(failures)
            if failed is not None:
                failed(error, failures, pause)
            await (sleep or asyncio.sleep)(pause)
    raise AssertionError("unreachable: the loop returns or raises")
