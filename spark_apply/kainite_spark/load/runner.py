"""Runs the steps of a load as the tasks of one plain Spark job."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kainite.base import logs
from kainite.base.errors import SparkUnavailableError
from kainite.base.logs import event
from kainite_spark.driver.job_watch import JobWatch, SparkLimits, progress_of
from kainite_spark.driver.runner import cause_of
from kainite_spark.driver.spark_thread import SparkThread
from kainite_spark.driver.stall import Progress
from kainite_spark.load.tasks import LoadStepResult, LoadTask, run_step

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

STEPS_AT_ONCE: Final = 8
"""Tasks of a job for each that runs at once: a task costs Spark more than a small table costs the databases."""


class SparkStepRunner:
    """Implements :class:`kainite_spark.load.rounds.StepRunner` on a Spark context.

    Args:
        context: the context.
        limits: how long Spark may take.
        stop: set to end the load.
    """

    def __init__(self, context: SparkContext, limits: SparkLimits, stop: threading.Event) -> None:
        self._context = context
        self._limits = limits
        self._stop = stop
        self._spark = SparkThread()
        self._job = 0

    @property
    def parallelism(self) -> int:
        return max(int(self._context.defaultParallelism), 1)

    def run(self, task: LoadTask, steps: Sequence[int], look: Callable[[], None]) -> list[LoadStepResult]:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        self._job += 1
        group = f"kainite-load-{task.generation}-{self._job}"
        watch = JobWatch(self._limits, self._stop, functools.partial(self._progress, group), _told)

        def seen(seconds: float) -> None:
            look()
            watch.look(seconds)

        def in_group() -> list[LoadStepResult]:
            self._context.setJobGroup(group, "kainite replicate load")
            tasks = self._context.parallelize(steps, min(len(steps), STEPS_AT_ONCE * self.parallelism))
            return list(tasks.mapPartitions(functools.partial(_run_steps, task)).collect())

        try:
            return self._spark.call(in_group, seen)
        except (Py4JError, PySparkException, OSError, EOFError) as error:
            raise SparkUnavailableError(f"a Spark job failed: {cause_of(str(error))}") from error
        except BaseException:
            with contextlib.suppress(Py4JError, OSError):
                self._context.cancelJobGroup(group)
            raise

    def _progress(self, group: str) -> Progress:
        from py4j.protocol import Py4JError

        try:
            return progress_of(self._context, group)
        except (Py4JError, OSError):
            return Progress(0, 0)


def _told(cause: str) -> None:
    event(_LOG, logging.WARNING, "waiting for Spark", cause=cause)


def _run_steps(task: LoadTask, steps: Iterator[int]) -> Iterator[LoadStepResult]:
    if not logging.getLogger().hasHandlers():
        logs.configure()
    for step in steps:
        yield run_step(task, step)
