"""Runs the steps of a load: in a task of Spark's, or with threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from typing import Final

from kainite_spark.load.any_step import run_any_step
from kainite_spark.load.tasks import LoadStepResult, LoadTask, close_sessions

LOOK_S: Final = 0.5


def run_steps(task: LoadTask, steps: Iterator[int]) -> Iterator[LoadStepResult]:
    """Yields the results of steps: what a Spark task of a load does."""
    for step in steps:
        yield run_any_step(task, step)


class ThreadStepRunner:
    """Implements :class:`kainite_spark.load.rounds.StepRunner` with threads, where there is no Spark to wait for.

    Args:
        parallelism: how many steps run at once.
    """

    def __init__(self, parallelism: int = 2) -> None:
        self.parallelism = parallelism

    def run(self, task: LoadTask, steps: Sequence[int], look: Callable[[], None]) -> list[LoadStepResult]:
        left: SimpleQueue[int] = SimpleQueue()
        for step in steps:
            left.put(step)
        over = threading.Event()
        with ThreadPoolExecutor(self.parallelism) as pool:
            futures = [pool.submit(_run_what_is_left, task, left, over) for _ in range(self.parallelism)]
            try:
                while wait(futures, LOOK_S).not_done:
                    look()
            finally:
                over.set()
        return [result for future in futures for result in future.result()]


def _run_what_is_left(task: LoadTask, left: SimpleQueue[int], over: threading.Event) -> list[LoadStepResult]:
    done = []
    try:
        while not over.is_set():
            done.append(run_any_step(task, left.get_nowait()))
    except Empty:
        pass
    finally:
        close_sessions()
    return done
