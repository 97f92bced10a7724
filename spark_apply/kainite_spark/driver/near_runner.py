"""Applies small micro-batches in the driver's own process, and gives larger ones to Spark.

A Spark job costs 60 ms, and 40 ms of processor time of the JVM, the driver and a worker, however few units it has. The
units of a small micro-batch take a few milliseconds, so a micro-batch is applied here if all its deltas came with the
feed (:mod:`kainite_spark.driver.payloads`) and it is within :data:`MOST_ENTRIES` and :data:`MOST_BYTES`.

The units are applied by the code of the tasks (:func:`~kainite_spark.executor.tasks.apply_parts`), under the same
fence, on a session that nothing else uses. So whatever holds for a task holds here:

=================================  ====================================================================================
event                              afterwards
=================================  ====================================================================================
the driver dies in it              the target has a group of units with its acknowledgements, or nothing of it; the next
                                   job tries the units again
the driver is frozen in it, and    its transaction meets the fence of the newer job, as a late task's does
another job takes over
it takes longer than a Spark job   the driver stops waiting, and forgets the session and its thread; the thread meets
may, or than the grace of a stop   the fence of the next micro-batch, as the task of a Spark job that was given up does
an error that no task foresees     Spark runs the same micro-batch: units that were applied here are acknowledged
=================================  ====================================================================================

Nothing is kept but the connection. All lanes of conflicting units are applied one after the other, in log order, which
every schedule of them allows.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Sequence
from typing import Final, Protocol

from kainite.base.errors import KainiteError
from kainite.base.logs import event
from kainite_spark.driver.job_watch import JobWatch, SparkLimits
from kainite_spark.driver.runner import Runner
from kainite_spark.driver.spark_thread import SparkThread
from kainite_spark.driver.stall import Progress
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.executor.tasks import apply_parts
from kainite_spark.plan.micro_batch import MicroBatch, TaskResult
from kainite_spark.plan.unit_part import UnitPart
from kainite_spark.targets.contract import Target, TargetSession

_LOG = logging.getLogger(__name__)

MOST_ENTRIES: Final = 500
"""The most entries of a small micro-batch: about a group that shares one target transaction, which no lane divides."""

MOST_BYTES: Final = 1 << 20
"""The most bytes of deltas of a small micro-batch; the driver parses them beside the feed."""

_RUNS: Final = Progress(running=1, completed=0)


class Retargetable(Runner, Protocol):
    """A runner whose tasks may get another target."""

    def retarget(self, target: Target) -> None:
        """Gives the tasks another target, from the next micro-batch on."""


class NearRunner:
    """Implements :class:`~kainite_spark.driver.runner.Runner` for both kinds of micro-batches.

    Args:
        spark: runs the larger micro-batches.
        target: the target.
        options: the options of the tasks.
        limits: how long a micro-batch may take.
        stop: set to stop the apply job.
    """

    def __init__(
        self,
        spark: Retargetable,
        target: Target,
        options: ApplyOptions,
        limits: SparkLimits | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        self._spark = spark
        self._target = target
        self._options = options
        self._limits = limits or SparkLimits()
        self._stop = stop or threading.Event()
        self._seat = _Seat()
        self._parallelism: int | None = None

    @property
    def parallelism(self) -> int:
        """Returns how many tasks Spark ran at once when it was asked last; the JVM is not asked for small ones."""
        if self._parallelism is None:
            self._parallelism = self._spark.parallelism
        return self._parallelism

    def retarget(self, target: Target) -> None:
        """Gives the tasks another target, from the next micro-batch on."""
        self._target = target
        self._spark.retarget(target)

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        parts = small(batch)
        if parts is None:
            self._parallelism = None  # executors may have come or gone
            return self._spark.run(batch)
        try:
            return [self._apply(batch, parts)]
        except KainiteError:
            self._seat = _Seat()
            raise
        except Exception as error:
            with contextlib.suppress(Exception):
                self.close()
            self._seat = _Seat()
            event(_LOG, logging.WARNING, "micro-batch given to Spark", cause=repr(error))
            return self._spark.run(batch)

    def close(self) -> None:
        """Closes the session, unless its thread does not answer."""
        if self._seat.used:
            watch = JobWatch(self._limits, self._stop, lambda: _RUNS, lambda _: None)
            self._seat.thread.call(self._seat.close, watch.look)

    def _apply(self, batch: MicroBatch, parts: Sequence[UnitPart]) -> TaskResult:
        """Applies the parts on the seat's thread; raises SparkUnavailableError where that takes too long."""
        seat, target = self._seat, self._target
        seat.used = True
        options = self._options.suited(alone=batch.alone, in_order=batch.in_order)
        watch = JobWatch(self._limits, self._stop, lambda: _RUNS, lambda _: None)
        return seat.thread.call(
            lambda: apply_parts(lambda: seat.session(target), batch.fence, options, 0, parts), watch.look
        )


class _Seat:
    """A thread, and the session that it alone uses. What does not come back is left to itself, with its session."""

    def __init__(self) -> None:
        self.thread = SparkThread("near")
        self.used = False
        self._open: tuple[Target, TargetSession] | None = None

    def session(self, target: Target) -> TargetSession:
        """Returns the session with a target; closes one with another target."""
        if self._open is None or self._open[0] is not target:
            self.close()
            self._open = target, target.connect()
        return self._open[1]

    def close(self) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            opened[1].close()


def small(batch: MicroBatch) -> Sequence[UnitPart] | None:
    """Returns all parts of a micro-batch that is to be applied here; None for one that is Spark's."""
    if not all(piece.given for piece in batch.slices) or sum(len(piece.given) for piece in batch.slices) > MOST_ENTRIES:
        return None
    parts = [part for piece in batch.slices for part in piece.given]
    return parts if sum(len(part.data) for part in parts) <= MOST_BYTES else None
