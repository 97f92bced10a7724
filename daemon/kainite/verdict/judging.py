"""The verdict: all checks, the lag and the next thing to do. Pure; facts in, a verdict out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from kainite.observe.check import Check, Level, worst
from kainite.verdict.facts import Facts
from kainite.verdict.lag import WholeLag, lag_of
from kainite.verdict.other_logs import one_log_check
from kainite.verdict.parts import (
    daemon_checks,
    figures_check,
    fleet_checks,
    owner_check,
    source_check,
    table_checks,
)
from kainite.verdict.replica import replica_checks
from kainite.verdict.shards import ShardView, shard_check, shard_views
from kainite.verdict.streams import stream_checks
from kainite.verdict.targets import differing_targets
from kainite.verdict.units import unit_checks


class ExitStatus(IntEnum):
    """The exit status of ``kainite status``; 2 is the shell's wrong usage too, and no less a reason to look."""

    HEALTHY = 0
    DEGRADED = 1
    BROKEN = 2
    UNKNOWN = 3

    @classmethod
    def of(cls, level: Level) -> ExitStatus:
        return {Level.DEGRADED: cls.DEGRADED, Level.BROKEN: cls.BROKEN, Level.UNKNOWN: cls.UNKNOWN}.get(
            level, cls.HEALTHY
        )


@dataclass(frozen=True, slots=True)
class ApplicationVerdict:
    """The verdict on an application.

    Attributes:
        facts: what it was judged from.
        checks: the parts' checks.
        lag: the lag, stage by stage.
        shards: the shards that are not finished.
    """

    facts: Facts
    checks: tuple[Check, ...]
    lag: WholeLag
    shards: tuple[ShardView, ...]

    @property
    def level(self) -> Level:
        return worst(self.checks)

    @property
    def status(self) -> ExitStatus:
        return ExitStatus.of(self.level)

    @property
    def troubles(self) -> tuple[Check, ...]:
        """Returns the checks that need a person, the worst first; of equal ones, the first cause first."""
        return tuple(sorted((check for check in self.checks if check.level.is_trouble), key=lambda check: -check.level))

    @property
    def next_step(self) -> str:
        """Returns what to do now; empty where there is nothing to do."""
        return next((check.remedy for check in self.troubles if check.remedy), "")


def judge(facts: Facts) -> ApplicationVerdict:
    """Returns the verdict on facts."""
    views = shard_views(facts)
    return ApplicationVerdict(facts, tuple(_checks(facts, views)), lag_of(facts), views)


def _checks(facts: Facts, views: tuple[ShardView, ...]) -> Iterator[Check]:
    yield from table_checks(facts)
    log = facts.log
    if log is not None:
        yield owner_check(log, facts.now_ms, facts.file)
    if views:
        yield shard_check(views, facts.file)
    yield from stream_checks(facts)
    yield from one_log_check(facts)
    if facts.fleet is not None and facts.fleet.picture is not None:
        yield from fleet_checks(facts.fleet.picture, facts.file)
    if log is not None and log.summary is not None:
        yield from unit_checks(log.summary, facts.now_ms, facts.unit_timeout, facts.file)
        if log.summary.assigned != facts.assigned:
            yield differing_targets(log.owner or "", facts.file)
    if log is not None and (figures := figures_check(log, facts.now_ms)) is not None:
        yield figures
    yield from daemon_checks(facts.daemons)
    yield source_check(facts.source)
    if facts.replica is not None:
        yield from replica_checks(facts.replica, facts.file)
