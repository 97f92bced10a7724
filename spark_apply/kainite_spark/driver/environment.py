"""The parts that an apply job works with, and the summary of its work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from kainite.log.contract import LogStore
from kainite.log.format.entry import UnitStatus
from kainite.observe.meter import SILENT, Meter
from kainite.peers.feed.following import LogFeed
from kainite.settings import ApplySettings
from kainite_spark.driver.current_target import CurrentTarget
from kainite_spark.driver.job_health import JobHealth
from kainite_spark.driver.runner import Runner
from kainite_spark.targets.atomic.target import AtomicTarget
from kainite_spark.targets.contract import Target
from kainite_spark.targets.log_tables import LogTables
from kainite_spark.targets.stop_requests import StopRequests
from kainite_spark.targets.together.target import TogetherTarget


@dataclass(frozen=True, slots=True)
class ApplyEnvironment:
    """Everything that an apply job works with.

    Attributes:
        settings: the apply job's section of the settings.
        store: the log's store.
        partition: the main log's partition.
        owner: this apply job's name, which no other apply job has.
        target: the target, already prepared (:meth:`Target.prepare`).
        runner: runs the tasks.
        ledger: the log's name in the target, which no other log that is applied to the target has. Transaction ids
            begin at 0 in every log, so the target would take two logs under one name for one.
        current: reads the target's catalogue again; None means that it is never read again.
        meter: takes the metrics.
        health: gathers the job's stage, and its reason to wait.
        feed: brings the log's entries as they become durable, and announces outcomes; None means that the job reads the
            log in the store.
        adopts: whether the target is taken as it is, whatever the log has as committed.
        stops: the requests of comparisons that the job stops for; None for a target that has none.
        name: the target's name, where the log has several; empty for the only one.
        tables: reads the catalogue, and returns what the log takes in the target; None where nobody takes any.
    """

    settings: ApplySettings
    store: LogStore
    partition: str
    owner: str
    target: Target
    runner: Runner
    ledger: str
    current: CurrentTarget | None = None
    meter: Meter = SILENT
    health: JobHealth = field(default_factory=JobHealth)
    feed: LogFeed | None = None
    adopts: bool = False
    stops: StopRequests | None = None
    name: str = ""
    tables: Callable[[], LogTables] | None = None

    @property
    def of_several(self) -> bool:
        """Returns whether the log has several targets, which keep the common mark."""
        return bool(self.name) or isinstance(self.target, AtomicTarget | TogetherTarget)


@dataclass(slots=True)
class ApplySummary:
    """The number of micro-batches that an apply job ran, and the numbers of units by status."""

    micro_batches: int = 0
    outcomes: Counter[UnitStatus] = field(default_factory=Counter)
