"""Whether a fleet's leader is alive. Pure functions, with the clocks passed in.

A leader gives two signs of life: the version of its lock changes every 30 s, and so does the time in its worker
entry (every ``workerMetricsReporterFreqInMillis``). What counts is when *this* worker saw them change, so no two hosts'
clocks are compared; only a report that was there before the first look is aged by its own time, so that a fleet
whose leader ended long ago is not waited for.

A leader is gone when its lock is absent or released; or stood still for the lock's duration; or when it used to
report and both signs stood still for as long as it takes its own kind to call a worker inactive (twice the reporting
interval).
"""

from __future__ import annotations

from dataclasses import dataclass

from kainite.fleet.kcl3.coordinator_items import LeaderLock


@dataclass(frozen=True, slots=True)
class Signs:
    """What was seen of one leader; times are by this worker's clock, seconds.

    Attributes:
        owner: the leader.
        version: its lock's version.
        version_seen: when that came, or was seen first; None while it may be of any age.
        report: when it reported last, by its own clock.
        report_seen: when that came, or was seen first less its age then; None without any report.
        first: when the leader was seen first.
    """

    owner: str
    version: str
    version_seen: float | None
    report: int | None
    report_seen: float | None
    first: float


def observe(signs: Signs | None, lock: LeaderLock | None, report: int | None, now: float, wall: float) -> Signs | None:
    """What is known after a look.

    Args:
        signs: what was known before.
        lock: the leader's lock; None when nobody leads.
        report: when that leader reported last, seconds since the epoch.
        now: this worker's clock.
        wall: seconds since the epoch.
    """
    if lock is None:
        return None
    if signs is None or signs.owner != lock.owner:
        # Another worker's name on the lock that was watched is a sign of life in itself.
        version_seen = None if signs is None else now
        report_seen = None if report is None else now - max(0.0, wall - report)
        return Signs(lock.owner, lock.version, version_seen, report, report_seen, now)
    version_seen = signs.version_seen if lock.version == signs.version else now
    report_seen = signs.report_seen if report == signs.report else now
    return Signs(lock.owner, lock.version, version_seen, report, report_seen, signs.first)


def alive(signs: Signs | None, duration: float, quiet: float, now: float) -> bool:
    """Whether the leader may be counted on.

    Args:
        signs: what was seen of it.
        duration: of its lock, seconds.
        quiet: seconds after which a worker that used to report is not counted on.
        now: this worker's clock.
    """
    if signs is None:
        return False
    lock_seen = signs.first if signs.version_seen is None else signs.version_seen
    if now - lock_seen >= duration:
        return False
    if signs.report_seen is None:
        return True
    latest = signs.report_seen if signs.version_seen is None else max(signs.version_seen, signs.report_seen)
    return now - latest < quiet
