"""Runs a function on items in processes of this host: what a local master would do, without a JVM.

The interface is that of :class:`kainite_spark.driver.spark_items.SparkItems`. With a local master Spark's tasks would
run on this host too, and pass through Python workers all the same; the JVM takes seconds to start, and some
milliseconds of the processor for each task.

Each process (:mod:`kainite_spark.driver.item_process`) works on one item at a time, and gets the next one when it has
answered. What an item has done, and whether it is to be done again, the databases alone know.

=========================  ============================================================================================
ended                      then
=========================  ============================================================================================
a process                  its item has no result; other processes go on with the items that are left, and the next call
                           of ``run`` starts another one in its place
the driver                 its processes see the end of their connection, and end at once, in the middle of an item
nothing, but ``stop`` is   no further item is begun; items under way have ``grace`` seconds, then their processes are
set                        killed
=========================  ============================================================================================
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Final, Generic, TypeVar

from kainite.base.errors import SparkUnavailableError

LOOK_S: Final = 0.5
"""Seconds between two looks while items run."""

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class _Process:
    """A process and the connection with it."""

    process: subprocess.Popen[bytes]
    connection: Connection

    def tell(self, what: object) -> bool:
        """Sends something; tells whether the process was there to get it."""
        try:
            self.connection.send(what)
        except OSError:
            return False
        return True

    def answer(self) -> Any:
        """Returns an answer that has come; None where the process is gone."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def end(self) -> None:
        """Kills the process, if it still lives."""
        self.process.kill()
        self.process.wait()
        self.connection.close()


class ProcessItems(Generic[T, I, R]):
    """Runs items in processes.

    Args:
        parallelism: how many items run at once.
        stop: set to end what runs.
        grace: seconds that items under way still get when ``stop`` is set.
        act: yields the results of items, given what they have in common; a function of a module.
    """

    def __init__(
        self,
        parallelism: int,
        stop: threading.Event,
        grace: float,
        act: Callable[[T, Iterator[I]], Iterable[R]],
    ) -> None:
        self.parallelism = parallelism
        self._stop = stop
        self._grace = grace
        self._act = act
        self._processes: list[_Process] = []

    def begin(self) -> None:
        """Starts the processes that are not there; returns at once, while they load what the function needs."""
        while len(self._processes) < self.parallelism:
            begun = _begun()
            self._processes.append(begun)
            begun.tell(self._act)

    def run(self, task: T, items: Sequence[I], look: Callable[[], None]) -> list[R]:
        """Returns the results of items; an item without a result did not run, or not to its end.

        Args:
            task: what the items have in common; picklable.
            items: the items.
            look: called every second or so meanwhile; its errors end the waiting, and what runs.

        Raises:
            SparkUnavailableError: the function raised an error.
        """
        self.begin()
        try:
            return self._run(task, deque(items), look)
        except BaseException:
            self.close()
            raise

    def _run(self, task: T, left: deque[I], look: Callable[[], None]) -> list[R]:
        results: list[R] = []
        busy: dict[Connection, _Process] = {}
        for process in list(self._processes):
            self._give(process, task, left, busy)
        look_at, over = time.monotonic() + LOOK_S, float("inf")
        while busy:
            for connection in wait(list(busy), LOOK_S):
                process = busy.pop(connection)  # type: ignore[call-overload]
                results += self._results(process)
                self._give(process, task, left, busy)
            now = time.monotonic()
            if now >= look_at:
                look()
                look_at = now + LOOK_S
            if self._stop.is_set():
                left.clear()
                over = min(over, now + self._grace)
            if now >= over:
                self.close()
                return results
        return results

    def _give(self, process: _Process, task: T, left: deque[I], busy: dict[Connection, _Process]) -> None:
        """Gives a process that waits the next item."""
        if not left or process not in self._processes:
            return
        if process.tell((task, left[0])):
            left.popleft()
            busy[process.connection] = process
        else:
            self._gone(process)

    def _results(self, process: _Process) -> list[R]:
        found = process.answer()
        if found is None:
            self._gone(process)
            return []
        if isinstance(found, str):
            raise SparkUnavailableError(f"a task failed: {found}")
        return list(found)

    def _gone(self, process: _Process) -> None:
        self._processes.remove(process)
        process.end()

    def close(self) -> None:
        """Ends the processes; what they do is rolled back."""
        while self._processes:
            self._processes.pop().end()


def _begun() -> _Process:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "kainite_spark.driver.item_process", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
    return _Process(process, Connection(ours.detach()))
