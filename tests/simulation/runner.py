"""Spark's part: the tasks of a micro-batch as processes of their own.

As in Spark, a task whose executor is lost is tried again elsewhere, up to four times. An executor that is merely silent
(frozen, or out of reach) is given up just so, and its task goes on beside the new attempt: the first answer counts. A
driver that dies leaves its tasks running.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from kainite.base.errors import SparkUnavailableError
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.executor.tasks import apply_parts, read_slice
from simulation.faults import Faults
from simulation.loop import Process, SimEvent

TRIES = 4

NewProcess = Callable[[str], Process]
"""Makes a process of the world with a name that begins so."""


class SimRunner:
    """Implements :class:`kainite_spark.driver.runner.Runner` for one driver.

    Args:
        faults: of the run.
        driver: the process that waits for the tasks.
        new_process: makes the tasks' processes.
        store_of, target_of: what a process has of the log, and of a target that was opened.
        target: what tasks apply units to, opened.
        options: how units are applied.
        parallelism: how many tasks run at once.
    """

    def __init__(
        self,
        faults: Faults,
        driver: Process,
        new_process: NewProcess,
        store_of: Callable[[Process], Any],
        target_of: Callable[[Process, Any], Any],
        target: Any,
        options: ApplyOptions,
        parallelism: int,
    ) -> None:
        self._faults = faults
        self.hub = faults.hub
        self._driver = driver
        self._new_process = new_process
        self._store_of = store_of
        self._target_of = target_of
        self._target = target
        self._options = options
        self.parallelism = parallelism

    def retarget(self, target: Any) -> None:
        """Gives the tasks another target, from the next micro-batch on."""
        self._target = getattr(target, "target", target)

    def run(self, batch: Any) -> list[Any]:
        """Runs a micro-batch; returns its tasks' results.

        Raises:
            SparkUnavailableError: a task was lost four times, or the whole job was.
        """
        name = self._faults.named(f"{self._driver.name} job")
        fate = self._faults.chance("job", name)
        doomed = (
            fate < self._faults.rates.get("job_lost", 0.0)
            and self.hub.now < self._faults.until
            and self._faults.happens(f"job_lost {name}")
        )
        job = _Job(self, batch, name)
        job.begin()
        if doomed:
            self.hub.pause(self._faults.between(0.0, 2.0, "job lost", name))
            raise SparkUnavailableError("a Spark job failed: its context was lost")
        return job.results()

    def start_task(self, batch: Any, instance: int, name: str, job: _Job) -> None:
        """Starts one attempt at a task."""
        process = self._new_process(f"task {name}")
        target = self._target
        process.on_death.append(lambda: self.hub.after(0.5, lambda: job.lost(instance, process), self._driver))

        def work() -> None:
            store = self._store_of(process)
            slices = batch.slices if batch.shuffled else batch.slices[instance : instance + 1]
            parts = [part for piece in slices for part in read_slice(store, "0", piece)]
            mine = [part for place, part in parts if place == instance]
            options = self._options.suited(batch)
            result = apply_parts(
                lambda: self._target_of(process, target).connect(), batch.fence, options, instance, mine
            )
            self.hub.after(0.01, lambda: job.answered(instance, result), self._driver)

        self.hub.spawn(process, work)
        patience = self._faults.between(2.0, 12.0, "patience", name)
        self.hub.after(patience, lambda: job.lost(instance, process), self._driver)


class _Job:
    """One micro-batch's tasks, as the driver sees them."""

    def __init__(self, runner: SimRunner, batch: Any, name: str) -> None:
        self._runner = runner
        self._batch = batch
        self._name = name
        self._news = SimEvent(runner.hub)
        self._answers: dict[int, Any] = {}
        self._given_up: set[str] = set()
        self._tries = [itertools.count(1) for _ in range(batch.instances)]
        self._failed = False

    def begin(self) -> None:
        for instance in range(self._batch.instances):
            self._try(instance)

    def results(self) -> list[Any]:
        while len(self._answers) < self._batch.instances and not self._failed:
            self._news.clear()
            self._news.wait()
        if self._failed:
            raise SparkUnavailableError("a Spark job failed: a task was lost four times")
        return [self._answers[instance] for instance in range(self._batch.instances)]

    def answered(self, instance: int, result: Any) -> None:
        self._answers.setdefault(instance, result)
        self._news.set()

    def lost(self, instance: int, process: Process) -> None:
        if instance in self._answers or process.name in self._given_up or self._failed:
            return
        self._given_up.add(process.name)
        self._try(instance)

    def _try(self, instance: int) -> None:
        attempt = next(self._tries[instance])
        if attempt > TRIES:
            self._failed = True
            self._news.set()
        else:
            self._runner.start_task(self._batch, instance, f"{self._name}.{instance}.{attempt}", self)
