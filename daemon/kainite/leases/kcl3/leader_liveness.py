"""Decides whether a fleet's leader is alive. Pure functions, with the clocks passed in.

A leader sends two heartbeats: the version of its lock changes every 30 s, and so does the time in its worker entry
(every ``workerMetricsReporterFreqInMillis``). Each is a counter of :mod:`kainite.base.liveness`, with two differences
on purpose:

* A report that existed at the first look is aged by its own time. So a fleet whose leader ended long ago is not
  waited for.
* Another worker's name on the lock counts as a movement of the lock.

A leader counts as gone when its lock is absent or released; or when the lock stood still for its duration; or when the
leader used to report, and both heartbeats stood still for the time after which KCL calls a worker inactive (twice the
reporting interval).
"""

from __future__ import annotations

from dataclasses import dataclass

from kainite.base.liveness import Sighting, observe
from kainite.leases.kcl3.coordinator_items import LeaderLock


@dataclass(frozen=True, slots=True)
class LeaderHeartbeats:
    """The two counters of one leader.

    Attributes:
        owner: the leader.
        lock: its lock's version; until it has moved, it may be of any age.
        report: when it reported last, by its own clock; None until it has reported.
    """

    owner: str
    lock: Sighting[str]
    report: Sighting[int | None]

    @property
    def reports(self) -> bool:
        """Returns whether the leader has ever reported."""
        return self.report.counter is not None or self.report.moved


def observe_leader(
    last: LeaderHeartbeats | None, lock: LeaderLock | None, report: int | None, now: float, wall: float
) -> LeaderHeartbeats | None:
    """Returns what is known after a look; None when nobody leads.

    Args:
        last: what was known before.
        lock: the leader's lock; None when nobody leads.
        report: when that leader reported last, seconds since the epoch.
        now: this worker's clock.
        wall: seconds since the epoch.
    """
    if lock is None:
        return None
    if last is None or last.owner != lock.owner:
        # Another worker's name on the lock is a movement: that worker has just taken it.
        version = Sighting(lock.version, now, moved=last is not None)
        # Aged by the leader's own clock, only here: a leader that ended before the first look is not waited for.
        age = 0.0 if report is None else max(0.0, wall - report)
        return LeaderHeartbeats(lock.owner, version, Sighting(report, now - age))
    return LeaderHeartbeats(lock.owner, observe(last.lock, lock.version, now), observe(last.report, report, now))


def alive(leader: LeaderHeartbeats | None, duration: float, quiet: float, now: float) -> bool:
    """Returns whether the leader may be counted on.

    Args:
        leader: what was seen of it; None when nobody leads.
        duration: of its lock, seconds.
        quiet: seconds after which a worker that used to report is not counted on.
        now: this worker's clock.
    """
    if leader is None or leader.lock.expired(now, duration):
        return False
    # Of a leader that never reported, only the lock can be judged.
    if not leader.reports:
        return True
    # A lock that has not moved yet may be of any age, so it does not outweigh an old report.
    return not leader.report.expired(now, quiet) or (leader.lock.moved and not leader.lock.expired(now, quiet))
