"""Runs the steps of a load: as the tasks of one plain Spark job, or with threads of this process."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from kainite.base.errors import SparkUnavailableError
from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.spark_items import SparkItems
from kainite_spark.load.tasks import LoadStepResult, LoadTask, close_sessions, run_step

if TYPE_CHECKING:
    from pyspark import SparkContext


LOOK_S: Final = 0.5


class SparkStepRunner:
    """Implements :class:`kainite_spark.load.rounds.StepRunner` on a Spark context.

    Args:
        context: the context.
        limits: how long Spark may take.
        stop: set to end the load.
    """

    def __init__(self, context: SparkContext, limits: SparkLimits, stop: threading.Event) -> None:
        self._items = SparkItems(context, limits, stop, "kainite replicate load")
        self._begin = functools.partial(SparkItems, context, limits, stop, "kainite replicate load begins")

    @property
    def parallelism(self) -> int:
        return self._items.parallelism

    def begin(self) -> None:
        """Has Spark start its Python workers, which takes as long as some ten thousand rows; returns at once.

        Meanwhile the driver makes the consistent point. Workers that do not come show as soon as a step is run.
        """
        threading.Thread(target=self.start_workers, name="workers", daemon=True).start()

    def start_workers(self) -> None:
        """Has Spark start its Python workers, and waits for them; not where Spark cannot, or the load is stopped."""
        with contextlib.suppress(SparkUnavailableError):
            self._begin().run(_nothing, range(self.parallelism), lambda: None)

    def run(self, task: LoadTask, steps: Sequence[int], look: Callable[[], None]) -> list[LoadStepResult]:
        return self._items.run(functools.partial(_run_steps, task), steps, look)


def _nothing(_: Iterator[int]) -> Iterator[int]:
    """Yields nothing: a worker that runs this has imported what a step needs."""
    yield from ()


def _run_steps(task: LoadTask, steps: Iterator[int]) -> Iterator[LoadStepResult]:
    for step in steps:
        yield run_step(task, step)


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
            done.append(run_step(task, left.get_nowait()))
    except Empty:
        pass
    finally:
        close_sessions()
    return done
