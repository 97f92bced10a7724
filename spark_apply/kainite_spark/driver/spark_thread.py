"""Runs the blocking calls of Spark on a thread of its own, so that the driver can stop waiting for one.

A call of the JVM has no limit: Spark waits for ever for an executor that never comes. The driver's main thread hands
the call to this thread and looks at it each :data:`LOOK_S`; an error of the look ends the waiting. The call itself goes
on until the job is cancelled or the JVM ends, which is why the thread is a daemon thread: it does not hold up the exit.

One thread makes all calls, since PySpark keeps a connection to the JVM for each thread that ever called.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, TypeVar

T = TypeVar("T")

LOOK_S: Final = 0.5
"""Seconds between two looks at a call that is under way."""


class SparkThread:
    """Makes one call at a time."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._make_calls, name="spark", daemon=True).start()

    def call(self, act: Callable[[], T], look: Callable[[float], None]) -> T:
        """Makes a call on the thread; returns its result.

        Args:
            act: the call.
            look: is called each :data:`LOOK_S` with the seconds since the beginning, and may raise to end the waiting.

        Raises:
            Exception: the error that ``act`` or ``look`` raises.
        """
        return self.wait(self.begin(act), look)

    def begin(self, act: Callable[[], T]) -> Future[T]:
        """Makes a call on the thread, behind those that were begun before; returns at once."""
        done: Future[T] = Future()
        self._calls.put((act, done))
        return done

    def wait(self, done: Future[T], look: Callable[[float], None]) -> T:
        """Returns the result of a call that was begun; arguments and errors as of :meth:`call`."""
        began = time.monotonic()
        while True:
            try:
                return done.result(LOOK_S)
            except TimeoutError:
                if done.done():  # the call itself raised it
                    return done.result()
            look(time.monotonic() - began)

    def close(self) -> None:
        """Ends the thread once the calls that were begun are over; returns at once."""
        self._calls.put(None)

    def _make_calls(self) -> None:
        while (call := self._calls.get()) is not None:
            act, done = call
            try:
                done.set_result(act())
            except BaseException as error:  # the caller gets every error of its call
                done.set_exception(error)
            del call, act, done
