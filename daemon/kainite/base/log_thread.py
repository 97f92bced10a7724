"""Writes log lines in a thread of its own, so that nothing else waits for whoever reads them.

Standard error is often a pipe to a log collector, or a terminal. When the reader stands still, a write to it blocks for
ever, and with it the event loop that logs: leases run out and signals are not seen. So a long-running program logs
through :func:`log_in_thread`: lines wait in a queue of :data:`LINES`, and what comes while the queue is full is dropped
and counted. The thread says how many lines are missing at the place where they are missing.

At the end of the program the lines that wait have :data:`LAST_LINES_S` to be written. A SIGKILL loses the lines that
are in the queue: with a reader that reads, those of the last milliseconds.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kainite.base.whole_write import write_whole

LINES: Final = 10_000
"""The most lines that wait to be written."""

LAST_LINES_S: Final = 2.0
"""Seconds that the end of the program waits for lines to be written."""


class LineQueue:
    """A stream for :class:`logging.StreamHandler` whose :meth:`write` never waits.

    Args:
        descriptor: the file descriptor that a thread writes the lines to. Python's own stream is not used: its lock,
            held by a write that blocks, would keep the interpreter from ending.
        lines: the most lines that wait.
    """

    def __init__(self, descriptor: int, lines: int) -> None:
        self._descriptor = descriptor
        self._lines: queue.Queue[str | None] = queue.Queue(lines)
        self._unsaid = 0
        self.dropped = 0
        """Lines that were dropped so far."""
        self._thread = threading.Thread(target=self._write_all, name="log-lines", daemon=True)
        self._thread.start()

    def write(self, line: str) -> None:
        """Puts a line, with its end, into the queue; drops it where the queue is full."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self.dropped += 1
            self._unsaid += 1

    def flush(self) -> None:
        """Does nothing: the thread keeps no line back."""

    def end(self, within: float) -> bool:
        """Ends the thread once all lines are written; returns False when that takes longer than ``within`` seconds."""
        until = time.monotonic() + within
        try:
            self._lines.put(None, timeout=within)
        except queue.Full:
            return False
        self._thread.join(max(0.0, until - time.monotonic()))
        return not self._thread.is_alive()

    def _write_all(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                _write(self._descriptor, line)
                if missing := self._unsaid:
                    self._unsaid -= missing
                    _write(self._descriptor, f"... {missing} log lines dropped: nobody read them in time\n")
            except OSError:  # the reader has gone; the program goes on without it
                self.dropped += 1


def _write(descriptor: int, line: str) -> None:
    write_whole(descriptor, line.encode(errors="backslashreplace"))


@contextmanager
def log_in_thread() -> Iterator[None]:
    """Writes what is logged to standard error by a thread, until the end of the ``with``.

    Handlers of other kinds, and streams without a file behind them, stay as they are.
    """
    moved = []
    for handler in logging.getLogger().handlers:
        if type(handler) is logging.StreamHandler and (descriptor := _descriptor(handler.stream)) is not None:
            lines = LineQueue(descriptor, LINES)
            moved.append((handler, handler.setStream(lines), lines))
    try:
        yield
    finally:
        for handler, stream, lines in moved:
            if lines.end(LAST_LINES_S):  # otherwise a further line would block: it goes into the full queue instead
                handler.setStream(stream)


def lines_dropped() -> int:
    """Returns how many log lines this process has dropped because nobody read them."""
    streams = [getattr(handler, "stream", None) for handler in logging.getLogger().handlers]
    return sum(stream.dropped for stream in streams if isinstance(stream, LineQueue))


def _descriptor(stream: object) -> int | None:
    try:
        return stream.fileno()  # type: ignore[attr-defined,no-any-return]
    except (AttributeError, OSError, ValueError):
        return None
