"""The tasks of a micro-batch, run one after the other in this process: for tests of all that is not Spark."""

from __future__ import annotations

from dataclasses import dataclass, field

from kainite.log.store.contract import LogStore
from kainite_spark.executor.group_commit import ApplyOptions, Retry
from kainite_spark.executor.tasks import RoutedPart, apply_parts, read_slice
from kainite_spark.plan.micro_batch import MicroBatch, TaskResult
from kainite_spark.targets.contract import Target

QUICK = ApplyOptions(retry=Retry(tries=2, first=0.01))


@dataclass
class InlineRunner:
    """Keeps :class:`kainite_spark.driver.runner.Runner`; ``ran`` remembers what it was given."""

    store: LogStore
    partition: str
    target: Target
    parallelism: int = 2
    options: ApplyOptions = QUICK
    ran: list[MicroBatch] = field(default_factory=list)

    def run(self, batch: MicroBatch) -> list[TaskResult]:
        self.ran.append(batch)
        shares = [share for piece in batch.slices for share in read_slice(self.store, self.partition, piece)]
        return [self._apply(batch, instance, shares) for instance in range(batch.instances)]

    def _apply(self, batch: MicroBatch, instance: int, shares: list[RoutedPart]) -> TaskResult:
        session = self.target.connect()
        try:
            mine = [share for place, share in shares if place == instance]
            return apply_parts(lambda: session, batch.fence, self.options, instance, mine)
        finally:
            session.close()
