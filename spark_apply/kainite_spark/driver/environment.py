"""Everything that an apply job works with, and what it has done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kainite.log.contract import LogStore
from kainite.log.format.entry import UnitStatus
from kainite.observe.meter import SILENT, Meter
from kainite.peers.feed.following import LogFeed
from kainite.settings import ApplySettings
from kainite_spark.driver.current_target import CurrentTarget
from kainite_spark.driver.job_health import JobHealth
from kainite_spark.driver.runner import Runner
from kainite_spark.targets.contract import Target


@dataclass(frozen=True, slots=True)
class ApplyEnvironment:
    """Everything that an apply job works with.

    Attributes:
        settings: the apply job's section of the settings.
        store: the log's store.
        partition: the main log's partition.
        owner: a name unlike that of any other apply job.
        target: the target, already prepared (:meth:`Target.prepare`).
        runner: runs the tasks.
        ledger: the log's name in the target, unlike that of any other log that is applied to the target.
            Transaction ids begin at 0 in every log, so two logs under one name would be taken for one.
        current: reads the target's catalogue again; None: never.
        meter: takes the metrics.
        health: is told what the job does, and what it waits for.
        feed: brings the log's entries as they become durable, and announces outcomes; None: the log is read.
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


@dataclass(slots=True)
class ApplySummary:
    """The number of micro-batches that an apply job ran, and the numbers of units by status."""

    micro_batches: int = 0
    outcomes: Counter[UnitStatus] = field(default_factory=Counter)
