"""Runs the tasks of a micro-batch one after the other in this process, for tests without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field

from kainite.log.contract import LogStore
from kainite_spark.executor.apply_options import ApplyOptions, Retry
from kainite_spark.executor.tasks import RoutedPart, apply_parts, read_slice
from kainite_spark.plan.micro_batch import MicroBatch, TaskResult
from kainite_spark.targets.contract import Target

QUICK = ApplyOptions(retry=Retry(tries=2, first=0.01))


@dataclass
class InlineRunner:
    """Implements :class:`kainite_spark.driver.runner.Runner`; ``ran`` lists its micro-batches."""

    store: LogStore
    partition: str
    target: Target
    parallelism: int = 2
    options: ApplyOptions = QUICK
    ran: list[MicroBatch] = field(default_factory=list)

    def retarget(self, target: Target) -> None:
        self.target = target

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        self.ran.append(batch)
        parts = [part for piece in batch.slices for part in read_slice(self.store, self.partition, piece)]
        return [self._apply(batch, instance, parts) for instance in range(batch.instances)]

    def _apply(self, batch: MicroBatch, instance: int, parts: list[RoutedPart]) -> TaskResult:
        options = self.options.suited(batch)
        session = self.target.connect()
        try:
            mine = [part for place, part in parts if place == instance]
            return apply_parts(lambda: session, batch.fence, options, instance, mine)
        finally:
            session.close()
