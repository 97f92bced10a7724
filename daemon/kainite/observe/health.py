"""Judges whether the daemon, and each of its shards, does its work. Pure: facts in, a report with its reasons out.

A child hangs when it has not answered anything for the setting's time since it was asked. A shard is stalled when it
has not got on for that time for another reason: Kinesis gives no reply or no record, the log takes nothing, or nobody
reads although the lease is held. It is quiet when its child is not asked because there are no records. None of these
ends anything: they are told. The report answers three questions:

* *live*: does the daemon's own event loop run? A restart mends nothing else, neither a child nor AWS.
* *ready*: does it reach the lease table, and can it append to the log, where there is one?
* *healthy*: is any shard hung, stalled, throttled or failing, does the lease table not answer, or do so many units wait
  to be applied that reading stopped? At the log's owner: is any unit failed, blocked or delayed, or does any wait long?
  Then a person should look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kainite.observe.check import Check, Level, spoken, worst
from kainite.observe.shard_status import ShardStatus
from kainite.settings import Settings

BEHIND_MS = 60_000
"""A shard is BEHIND from so many milliseconds on; a healthy reader is a few seconds behind."""

QUIET_S = 60.0
"""A shard is QUIET after so many seconds without records."""

MISSED_ROUNDS = 3
"""The lease table counts as away after so many intervals of ``leaseAssignmentIntervalMillis`` without a round."""


class Health(StrEnum):
    """The health of a shard."""

    OK = "ok"
    QUIET = "quiet"  # no records
    BEHIND = "behind"  # at work, and late
    WAITING = "waiting"  # its child starts, ends or is between two tries
    FAILING = "failing"  # child after child fails
    HUNG = "hung"  # its child does not answer
    STALLED = "stalled"  # it does not get on for another reason
    THROTTLED = "throttled"  # Kinesis refuses calls again and again


TROUBLE = frozenset({Health.FAILING, Health.HUNG, Health.STALLED, Health.THROTTLED})


class LogMountState(StrEnum):
    """The state of the serialization log, as this daemon sees it."""

    DISABLED = "disabled"
    WAITING = "waiting"  # another daemon owns it and is not reached, or nobody owns it yet
    MOUNTED = "mounted"  # this daemon owns it
    FOLLOWING = "following"  # another daemon owns it, and this daemon appends through that one


@dataclass(frozen=True, slots=True)
class WorkerFacts:
    """The facts that the daemon knows of itself.

    Attributes:
        leases: how many leases the daemon holds.
        reached: seconds since the lease table last answered a whole round; None before the first.
        log: the log's state.
        stopping: whether the daemon was told to stop.
        backlog: why the log, or the output stream, takes no more from the shards; empty while it does.
        followers: who follows the log here, and how many durable entries each has not taken.
        watermark: the reason why units without an end wait; empty while none waits here.
        checks: the checks on the log's units, where this daemon owns the log (:mod:`kainite.verdict.units`).
        access: what is wrong with the certificates and secrets of the log's ports; empty while nothing is.
    """

    leases: int = 0
    reached: float | None = None
    log: LogMountState = LogMountState.DISABLED
    stopping: bool = False
    backlog: str = ""
    followers: tuple[tuple[str, int], ...] = ()
    watermark: str = ""
    checks: tuple[Check, ...] = ()
    access: str = ""


@dataclass(frozen=True, slots=True)
class HealthLimits:
    """The limits that the settings set.

    Attributes:
        hung_after: seconds that a child may be silent, that a shard may stand still, and be throttled.
        poison_tries: failures in a row from which a shard is failing.
        unreached_after: seconds without a round of the lease table from which the table counts as away.
    """

    hung_after: float
    poison_tries: int
    unreached_after: float

    @classmethod
    def of(cls, settings: Settings) -> HealthLimits:
        interval = settings.leases.assignment_interval or 2 * settings.leases.failover
        return cls(settings.metrics.hung_after, settings.child.poison_tries, MISSED_ROUNDS * interval)


@dataclass(frozen=True, slots=True)
class ShardHealth:
    """A shard's status, its health, and the reason in a sentence."""

    status: ShardStatus
    health: Health
    why: str


@dataclass(frozen=True, slots=True)
class HealthReport:
    """The health of the whole daemon. ``not_ready`` and ``problems`` give the reasons; empty means well."""

    worker: WorkerFacts
    shards: tuple[ShardHealth, ...]
    not_ready: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def checks(self) -> tuple[Check, ...]:
        return self.worker.checks

    @property
    def ready(self) -> bool:
        return not self.not_ready

    @property
    def healthy(self) -> bool:
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Returns the answer to ``GET /health``."""
        return {
            "healthy": self.healthy,
            "verdict": max(worst(self.checks), Level.DEGRADED if self.problems else Level.OK).word,
            "ready": self.ready,
            "problems": self.problems,
            "not_ready": self.not_ready,
            "leases": self.worker.leases,
            "log": self.worker.log,
            "followers": dict(self.worker.followers),
            "watermark": self.worker.watermark,
            "checks": [check.as_json() for check in self.checks],
            "shards": [_shard_json(shard) for shard in self.shards],
        }


def judge(statuses: Sequence[ShardStatus], worker: WorkerFacts, limits: HealthLimits) -> HealthReport:
    """Returns the report on the whole daemon."""
    shards = tuple(judge_shard(status, limits) for status in sorted(statuses, key=lambda status: status.shard))
    problems = [_problem(shard) for shard in shards if shard.health in TROUBLE]
    if _is_late(worker, limits):
        problems.append(_late(worker))
    problems += [check.cause for check in worker.checks if check.level.is_trouble]
    if worker.backlog and worker.backlog not in problems:
        problems.append(worker.backlog)
    if worker.access:
        problems.append(worker.access)
    return HealthReport(worker, shards, tuple(_not_ready(worker, limits)), tuple(problems))


def judge_shard(status: ShardStatus, limits: HealthLimits) -> ShardHealth:
    """Returns the health of one shard; where several apply, the worst."""
    silent = status.silent or 0.0
    if status.action is not None and silent >= limits.hung_after:
        return ShardHealth(status, Health.HUNG, f"the child has not answered {status.action} for {spoken(silent)}")
    if status.failures >= limits.poison_tries:
        failed = f"{status.failures} children failed in a row" if status.failures > 1 else "a child failed"
        return ShardHealth(status, Health.FAILING, failed)
    if (stands := status.standstill) is not None and stands.seconds >= limits.hung_after:
        return ShardHealth(
            status, Health.STALLED, f"the shard has not got on for {spoken(stands.seconds)}: {stands.cause}"
        )
    if status.throttled is not None and status.throttled >= limits.hung_after:
        return ShardHealth(
            status, Health.THROTTLED, f"Kinesis has throttled its reading for {spoken(status.throttled)}"
        )
    if status.pid is None or status.state != "PROCESSING":
        return ShardHealth(status, Health.WAITING, f"no records are processed in state {status.state}")
    behind = status.behind_ms or 0
    if behind >= BEHIND_MS:
        return ShardHealth(status, Health.BEHIND, f"{spoken(behind / 1000)} behind the latest record")
    if status.action is not None:
        return ShardHealth(status, Health.OK, f"the child has worked on {status.action} for {spoken(silent)}")
    if status.last_record is None:
        return ShardHealth(status, Health.QUIET, "no records yet")
    if status.last_record >= QUIET_S:
        return ShardHealth(status, Health.QUIET, f"no records for {spoken(status.last_record)}")
    return ShardHealth(status, Health.OK, "records are processed as they come")


def _problem(shard: ShardHealth) -> str:
    said = (
        f"; its last line: {shard.status.stderr}"
        if shard.status.stderr and shard.health is not Health.THROTTLED
        else ""
    )
    return f"{shard.status.shard}: {shard.why}{said}"


def _not_ready(worker: WorkerFacts, limits: HealthLimits) -> list[str]:
    reasons = ["the daemon stops"] if worker.stopping else []
    if worker.log is LogMountState.WAITING:
        reasons.append("the log's owner is not reached")
    if worker.reached is None:
        reasons.append("the lease table was not read yet")
    elif _is_late(worker, limits):
        reasons.append(_late(worker))
    return reasons


def _is_late(worker: WorkerFacts, limits: HealthLimits) -> bool:
    return worker.reached is not None and worker.reached >= limits.unreached_after


def _late(worker: WorkerFacts) -> str:
    return f"the lease table has not answered for {spoken(worker.reached or 0.0)}"


def _shard_json(shard: ShardHealth) -> dict[str, Any]:
    status = shard.status
    return {
        "shard": status.shard,
        "health": shard.health,
        "why": shard.why,
        "state": status.state,
        "pid": status.pid,
        "action": status.action,
        "silent_seconds": status.silent,
        "behind_millis": status.behind_ms,
        "last_record_seconds": status.last_record,
        "standstill_seconds": status.standstill.seconds if status.standstill else None,
        "throttled_seconds": status.throttled,
        "failures": status.failures,
        "stderr": status.stderr,
    }
