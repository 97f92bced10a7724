"""The apply job's report of its health: its stage, and the reason for which it waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kainite.base.words import counted
from kainite.observe.check import Check, Level, spoken
from kainite.observe.health import ShardHealth
from kainite.verdict.facts import ReplicaFacts
from kainite.verdict.replica import replica_checks

LATE_S: Final = 300.0
"""An apply job that has made no round for so long has a problem."""


PREPARED_S: Final = 60.0
"""A transaction of several targets that has been prepared for so long is a problem: it holds locks in its targets."""


class JobStage(StrEnum):
    """The stages of an apply job."""

    STARTING = "starting"  # the target is prepared, Spark starts
    STANDBY = "standby"  # another apply job applies units
    APPLYING = "applying"  # this job applies units
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class JobReport:
    """The health of an apply job.

    Attributes:
        stage: the job's present stage.
        seconds: the time since the job's last sign of life: it entered the stage, or completed a round.
        trouble: the reason for which the job waits; empty while it does not wait.
        failed: how many failed units nobody has retried or discarded.
        followed: whether the log's owner sends its durable batches; otherwise the job reads the log, which is no
            problem.
        access: what is wrong with the certificates and secrets of the log's ports; empty while nothing is.
        paused: who has paused applying, since when and why; empty while units are applied. It is no problem of the job.
        replica: what the target tells of a replica; None for another target, or while it was not asked.
        target: which of several targets the job serves; empty for the only one.
        prepared: seconds since the oldest transaction of several targets was prepared that is not finished; 0 without
            one.
    """

    stage: JobStage
    seconds: float
    trouble: str = ""
    failed: int = 0
    followed: bool = False
    access: str = ""
    paused: str = ""
    replica: ReplicaFacts | None = None
    target: str = ""
    prepared: float = 0.0

    @property
    def checks(self) -> tuple[Check, ...]:
        """Returns the checks on what a person must decide on or mend."""
        failed = Check("failed units", Level.OK, "none")
        if self.failed:
            of_target = f" --target {self.target}" if self.target else ""
            theirs = "holds back what touches its rows" if self.failed == 1 else "hold back what touches their rows"
            cause = f"{counted(self.failed)} failed, and {theirs}"
            failed = Check(
                "failed units", Level.DEGRADED, cause, f"kainite log show -p FILE{of_target} --status failed"
            )
        return (failed, *self._prepared(), *(() if self.replica is None else replica_checks(self.replica)))

    def _prepared(self) -> Iterator[Check]:
        if self.prepared > PREPARED_S:
            cause = (
                f"a transaction of several targets is prepared for {spoken(self.prepared)}, and holds locks and old row"
                " versions in its targets: a target, or the log, does not answer"
            )
            yield Check("prepared transactions", Level.DEGRADED, cause, "kainite apply resolve -p FILE")

    @property
    def ready(self) -> bool:
        """Returns whether the job applies units, or would do so as soon as the other apply job ends."""
        return self.stage in (JobStage.STANDBY, JobStage.APPLYING) and not self.trouble

    @property
    def healthy(self) -> bool:
        return not self.problems

    @property
    def problems(self) -> tuple[str, ...]:
        """Returns the job's problems; a failed unit is one of them, because a person must decide on it."""
        late = self.stage is JobStage.APPLYING and self.seconds > LATE_S
        cause = self.trouble or (f"no round was completed for {spoken(self.seconds)}" if late else "")
        waits = (check.cause for check in self.checks if check.level.is_trouble)
        return tuple(filter(None, (cause, self.access, *waits)))

    @property
    def shards(self) -> Sequence[ShardHealth]:
        return ()

    def as_json(self) -> dict[str, Any]:
        return {
            **({"target": self.target} if self.target else {}),
            "healthy": self.healthy,
            "ready": self.ready,
            "stage": self.stage.value,
            "seconds": round(self.seconds, 1),
            "failed_units": self.failed,
            "followed": self.followed,
            "paused": self.paused,
            "checks": [check.as_json() for check in self.checks],
            "problems": list(self.problems),
        }


class JobHealth:
    """Gathers what the driver's threads know; any thread may ask.

    Args:
        clock: returns seconds that only go forward.
        target: which of several targets the job serves; empty for the only one.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, target: str = "") -> None:
        self._clock = clock
        self._target = target
        self._lock = threading.Lock()
        self._stage, self._since = JobStage.STARTING, clock()
        self._trouble, self._failed, self._followed = "", 0, False
        self.also: Callable[[], str] = lambda: ""
        """Returns what is wrong with the certificates and secrets of the log's ports."""
        self.paused = ""
        """Who has paused applying, since when and why; empty while units are applied."""
        self.replica: ReplicaFacts | None = None
        """What the target told last of a replica."""
        self.prepared = 0.0
        """Seconds since the oldest transaction of several targets was prepared that is not finished; 0 without one."""

    def enter(self, stage: JobStage) -> None:
        """Notes that a stage begins."""
        with self._lock:
            self._stage, self._since, self._trouble = stage, self._clock(), ""

    def round(self, failed: int, *, followed: bool = False) -> None:
        """Notes that a round was completed, how many units stand failed, and whether the log is followed."""
        with self._lock:
            self._since, self._trouble, self._failed, self._followed = self._clock(), "", failed, followed

    def waits_for(self, trouble: object) -> None:
        """Notes the reason for which the job waits."""
        with self._lock:
            self._trouble = str(trouble)

    def report(self) -> JobReport:
        with self._lock:
            since, also = self._clock() - self._since, self.also()
            return JobReport(
                self._stage, since, self._trouble, self._failed, self._followed, also, self.paused, self.replica,
                self._target,
                self.prepared,
            )  # fmt: skip
