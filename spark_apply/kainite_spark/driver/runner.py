"""Runs a micro-batch as one plain Spark job.

::

    read slices ──► shuffle by job instance ──► apply, one task a job instance ──► outcomes

With few job instances there is no shuffle: each instance reads its entries and applies them in one task.
A job without a shuffle was measured to cost about 0.1 s, a job with a shuffle 0.4 s. A Structured Streaming
micro-batch with a Python source and sink costs 0.25 s, and would keep a second ledger beside the target's.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from kainite.base.errors import KainiteError, SettingsError, SparkStalledError, SparkUnavailableError
from kainite.base.garbage import collect_rarely, keep_what_is_loaded
from kainite.base.logs import event
from kainite.settings.credentials import Provider
from kainite.settings.kinds.target_kinds import driver_packages
from kainite_spark.driver.job_watch import JobWatch, SparkLimits, progress_of
from kainite_spark.driver.spark_thread import SparkThread
from kainite_spark.driver.stall import Progress
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.executor.tasks import RoutedPart, TaskSettings, apply_parts, read_slice, session_of, store_of
from kainite_spark.plan.micro_batch import MicroBatch, Slice, TaskResult
from kainite_spark.targets.contract import Target
from kainite_spark.targets.fence import Fence

if TYPE_CHECKING:
    from pyspark import RDD, SparkContext

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

CANCEL_S: Final = 5.0
"""Seconds for which the driver waits until a cancelled Spark job has ended; then it leaves the job to itself."""

FIRST_STALL: Final = 4
"""The factor by which the first job may stall longer than later jobs, because its executors have to start."""

_INSTALL: Final = (
    "the executors' Python cannot run Kainite: set applyPython to one that has kainite[spark] installed (docs/spark.md)"
)
_CREDENTIALS: Final = "give the executors a role, or set applyAwsFrom=driver (docs/spark.md)"
_NEEDED: Final = ("kainite", "botocore", "orjson", "backports", *driver_packages())
_ADVICE: Final = (
    (re.compile(rf"No module named '({'|'.join(_NEEDED)})"), _INSTALL),
    (re.compile(r"Cannot run program|PYTHON_VERSION_MISMATCH|Python in worker has different version"), _INSTALL),
)
_PYTHON_ERROR = re.compile(r"^((?!org\.|java|py4j)[\w.]+: .+)$", re.MULTILINE)
_JAVA_ERROR = re.compile(r"^: (.+)$", re.MULTILINE)


class Runner(Protocol):
    """Runs the tasks of micro-batches."""

    @property
    def parallelism(self) -> int:
        """Returns how many tasks run at once."""

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        """Runs a micro-batch; a job instance without a result did not run.

        Raises:
            SparkUnavailableError: the Spark job failed; the outcomes of its units are unknown.
        """


class SparkRunner:
    """Implements :class:`Runner` on a Spark context.

    Args:
        context: the context.
        settings: the settings that the tasks need.
        limits: how long Spark may take.
        stop: set to stop the apply job.
        waits_for: called with the reason when a job stalls.
        credentials: returns the present AWS credentials for the tasks; None means that executors have their own.
    """

    def __init__(
        self,
        context: SparkContext,
        settings: TaskSettings,
        limits: SparkLimits | None = None,
        stop: threading.Event | None = None,
        waits_for: Callable[[object], None] = lambda _: None,
        credentials: Callable[[], Provider] | None = None,
    ) -> None:
        self._credentials = credentials
        self._context = context
        self._settings = settings
        self._limits = limits or SparkLimits()
        self._stop = stop or threading.Event()
        self._waits_for = waits_for
        self._spark = SparkThread()
        self._job = 0
        self._parallelism = int(context.defaultParallelism)

    @property
    def parallelism(self) -> int:
        from py4j.protocol import Py4JError

        # The number grows as executors come. If the JVM is gone, the last number stays: the next job will fail.
        with contextlib.suppress(Py4JError, OSError):
            self._parallelism = int(self._context.defaultParallelism)
        return self._parallelism

    def warm_up(self) -> None:
        """Starts the worker processes with their imports and connections, so that no unit has to wait for them (5 s).

        An error that may pass is ignored: if it lasts, the first micro-batch meets and handles it.

        Raises:
            SettingsError: the executors cannot work with their present set-up.
            SparkStalledError: no task runs.
        """
        self._refresh()
        tasks = self._context.parallelize(range(self.parallelism), self.parallelism)
        try:
            patient = replace(self._limits, stall=FIRST_STALL * self._limits.stall)
            problems = self._wait_for(
                tasks.mapPartitions(functools.partial(_warm_up_task, self._settings)).collect, patient
            )
        except SparkStalledError:
            raise
        except SparkUnavailableError as error:
            if advice := advice_on(str(error)):
                raise SettingsError(f"{advice} ({error})") from error
        else:
            if problems:
                raise SettingsError(f"on the executors: {problems[0]}; {_CREDENTIALS}")

    def retarget(self, target: Target) -> None:
        """Gives the tasks another target, from the next micro-batch on."""
        self._settings = self._settings.retargeted(target)

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        self._refresh()
        return list(self._wait_for(lambda: self._results(batch).collect()))

    def _refresh(self) -> None:
        """Gives the tasks the present AWS credentials."""
        if self._credentials is not None:
            self._settings = self._settings.with_credentials(self._credentials())

    def _wait_for(self, job: Callable[[], list[T]], limits: SparkLimits | None = None) -> list[T]:
        """Returns a Spark job's results.

        Raises:
            SparkUnavailableError: the job failed, took too long, or was given up at the stop.
            SparkStalledError: no task of the job runs.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        # Each job has a group of its own: Spark remembers a thousand jobs, and a look makes calls for each job of a
        # group.
        self._job += 1
        group = f"{self._settings.run}-{self._job}"

        def in_group() -> list[T]:
            self._context.setJobGroup(group, "kainite apply")
            return job()

        watch = JobWatch(limits or self._limits, self._stop, functools.partial(self._progress, group), self._told)
        try:
            return self._spark.call(in_group, watch.look)
        except SparkUnavailableError:
            self._cancel(group)
            raise
        except (Py4JError, PySparkException, OSError, EOFError) as error:
            raise SparkUnavailableError(f"a Spark job failed: {cause_of(str(error))}") from error

    def _told(self, cause: str) -> None:
        event(_LOG, logging.WARNING, "waiting for Spark", cause=cause)
        self._waits_for(cause)

    def _cancel(self, group: str) -> None:
        """Cancels the job; returns when the call has returned, or after CANCEL_S."""
        from py4j.protocol import Py4JError

        with contextlib.suppress(Py4JError, OSError):
            self._context.cancelJobGroup(group)
        with contextlib.suppress(SparkUnavailableError):
            self._spark.call(lambda: None, _give_up_after(CANCEL_S))

    def _progress(self, group: str) -> Progress:
        from py4j.protocol import Py4JError

        try:
            return progress_of(self._context, group)
        except (Py4JError, OSError):
            return Progress(0, 0)

    def _results(self, batch: MicroBatch) -> RDD[TaskResult]:
        slices = self._context.parallelize(batch.slices, len(batch.slices))
        parts = slices.mapPartitions(functools.partial(_read_task, self._settings))
        if batch.shuffled:
            parts = parts.partitionBy(batch.instances, _identity)
        options = self._settings.options.suited(batch)
        return parts.mapPartitionsWithIndex(functools.partial(_apply_task, self._settings, batch.fence, options))


def _give_up_after(limit: float) -> Callable[[float], None]:
    def look(seconds: float) -> None:
        if seconds >= limit:
            raise SparkUnavailableError(f"Spark did not answer for {limit:.0f} s")

    return look


def advice_on(cause: str) -> str | None:
    """Returns the advice which setting to change where executors cannot run tasks at all; None for any other cause."""
    return next((advice for pattern, advice in _ADVICE if pattern.search(cause)), None)


def cause_of(message: str) -> str:
    """Returns the line of a Java stack trace that gives the cause: the Python exception in it, if there is one."""
    found = _PYTHON_ERROR.search(message) or _JAVA_ERROR.search(message)
    return found[1] if found else message.strip().partition("\n")[0]


def _warm_up_task(settings: TaskSettings, _: Iterator[int]) -> Iterator[str]:
    """Yields the reason if this worker process cannot work with its settings or credentials."""
    try:
        store_of(settings)
    except SettingsError as error:
        yield str(error)
        return
    with contextlib.suppress(KainiteError):
        session_of(settings)
    _keep_once(settings)


@functools.lru_cache(maxsize=1)
def _keep_once(_: TaskSettings) -> None:
    """Exempts all objects that this worker process has loaded from garbage collection, once for these settings.

    Spark's worker collects garbage after each task, before it takes the next one. Looking through all modules, clients
    and the catalogue took longer than applying a few units. A task itself leaves next to no garbage in cycles.
    """
    collect_rarely()
    keep_what_is_loaded()


def _read_task(settings: TaskSettings, slices: Iterator[Slice]) -> Iterator[RoutedPart]:
    for piece in slices:
        yield from read_slice(store_of(settings), settings.partition, piece, settings.options.unit_bytes)


def _apply_task(
    settings: TaskSettings, fence: Fence, options: ApplyOptions, instance: int, parts: Iterable[RoutedPart]
) -> Iterator[TaskResult]:
    mine = (part for _, part in parts)
    yield apply_parts(functools.partial(session_of, settings), fence, options, instance, mine)
    _keep_once(settings)


def _identity(instance: int) -> int:
    return instance
