"""Runs a function on items as the tasks of one plain Spark job, for a load and for a comparison."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from kainite.base import logs
from kainite.base.errors import SparkUnavailableError
from kainite.base.logs import event
from kainite_spark.driver.job_watch import JobWatch, SparkLimits, progress_of
from kainite_spark.driver.runner import cause_of
from kainite_spark.driver.spark_thread import SparkThread
from kainite_spark.driver.stall import Progress

if TYPE_CHECKING:
    from pyspark import SparkContext

_LOG = logging.getLogger(__name__)

ITEMS_AT_ONCE: Final = 8
"""Tasks of a job for each that runs at once: a task costs Spark more than a small table costs the databases."""

T = TypeVar("T")
I = TypeVar("I")  # noqa: E741
R = TypeVar("R")


class SparkItems(Generic[T, I, R]):
    """Runs jobs on a Spark context, one after the other.

    Args:
        context: the context.
        limits: how long Spark may take.
        stop: set to end what runs.
        name: what runs, for Spark's pages.
        act: yields the results of items, given what they have in common; picklable.
    """

    def __init__(
        self,
        context: SparkContext,
        limits: SparkLimits,
        stop: threading.Event,
        name: str,
        act: Callable[[T, Iterator[I]], Iterable[R]],
    ) -> None:
        self._act = act
        self._context = context
        self._limits = limits
        self._stop = stop
        self._name = name
        self._spark = SparkThread()
        self._job = 0

    @property
    def parallelism(self) -> int:
        """Returns how many items run at once."""
        return max(int(self._context.defaultParallelism), 1)

    def begin(self) -> None:
        """Has Spark start its Python workers, which takes as long as some ten thousand rows; returns at once.

        Workers that do not come show as soon as items are run.
        """
        threading.Thread(target=self.start_workers, name="workers", daemon=True).start()

    def start_workers(self) -> None:
        """Has Spark start its Python workers, and waits for them; not where Spark cannot, or is stopped."""
        name = f"{self._name} begins"
        workers = SparkItems[Any, int, int](self._context, self._limits, self._stop, name, _nothing)
        try:
            workers.run(self._act, range(self.parallelism), lambda: None)
        except SparkUnavailableError:
            pass
        except AttributeError:
            # Whoever had nothing to run has stopped the session meanwhile: PySpark's calls then fail on what is None.
            if self._context._jsc is not None:  # noqa: SLF001  # PySpark has no public way to ask
                raise

    def run(self, task: T, items: Sequence[I], look: Callable[[], None]) -> list[R]:
        """Returns the results of items, of which each task gets some.

        Args:
            task: what the items have in common; picklable.
            items: the items; one at least.
            look: called every second or so meanwhile; its errors end the waiting.

        Raises:
            SparkUnavailableError: the Spark job failed.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        self._job += 1
        group = f"{self._name}-{self._job}"
        watch = JobWatch(self._limits, self._stop, functools.partial(self._progress, group), _told)

        def seen(seconds: float) -> None:
            look()
            watch.look(seconds)

        def in_group() -> list[R]:
            self._context.setJobGroup(group, self._name)
            tasks = self._context.parallelize(items, min(len(items), ITEMS_AT_ONCE * self.parallelism))
            return list(
                tasks.mapPartitions(functools.partial(_with_logs, functools.partial(self._act, task))).collect()
            )

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


def _nothing(_act: Any, _: Iterator[int]) -> Iterator[int]:
    """Yields nothing: a worker that is given the function of the items has imported what it needs."""
    yield from ()


def _told(cause: str) -> None:
    event(_LOG, logging.WARNING, "waiting for Spark", cause=cause)


def _with_logs(act: Callable[[Iterator[I]], Iterable[R]], items: Iterator[I]) -> Iterable[R]:
    if not logging.getLogger().hasHandlers():
        logs.configure()
    return act(items)
