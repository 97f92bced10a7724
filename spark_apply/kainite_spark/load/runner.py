"""Runs the steps of a load as the tasks of one plain Spark job."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from kainite_spark.driver.job_watch import SparkLimits
from kainite_spark.driver.spark_items import SparkItems
from kainite_spark.load.tasks import LoadStepResult, LoadTask, run_step

if TYPE_CHECKING:
    from pyspark import SparkContext


class SparkStepRunner:
    """Implements :class:`kainite_spark.load.rounds.StepRunner` on a Spark context.

    Args:
        context: the context.
        limits: how long Spark may take.
        stop: set to end the load.
    """

    def __init__(self, context: SparkContext, limits: SparkLimits, stop: threading.Event) -> None:
        self._items = SparkItems(context, limits, stop, "kainite replicate load")

    @property
    def parallelism(self) -> int:
        return self._items.parallelism

    def run(self, task: LoadTask, steps: Sequence[int], look: Callable[[], None]) -> list[LoadStepResult]:
        return self._items.run(functools.partial(_run_steps, task), steps, look)


def _run_steps(task: LoadTask, steps: Iterator[int]) -> Iterator[LoadStepResult]:
    for step in steps:
        yield run_step(task, step)
