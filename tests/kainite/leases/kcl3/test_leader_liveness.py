"""A leader is alive as long as its heartbeats go on, by the observer's own clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.leases.kcl3.coordinator_items import LeaderLock
from kainite.leases.kcl3.leader_liveness import LeaderHeartbeats, alive, observe_leader

WALL = 1_795_000_000.0
DURATION, QUIET = 120.0, 60.0


def lock(version: int = 0, owner: str = "java") -> LeaderLock:
    return LeaderLock(owner, f"v{version}", DURATION)


def look(
    signs: LeaderHeartbeats | None, at: float, version: int = 0, report: float | None = 0.0
) -> LeaderHeartbeats | None:
    """Makes a look at second ``at``; ``report`` is the second of the leader's last report, by the same clock."""
    reported = None if report is None else int(WALL + report)
    return observe_leader(signs, lock(version), reported, at, WALL + at)


def lives(signs: LeaderHeartbeats | None, at: float) -> bool:
    return alive(signs, DURATION, QUIET, at)


def test_a_leader_that_reported_just_now_is_alive_at_the_first_look() -> None:
    assert lives(look(None, 0.0), 0.0)


def test_a_leader_that_ended_before_the_first_look_is_not_waited_for() -> None:
    assert not lives(look(None, 0.0, report=-QUIET), 0.0)


def test_a_leader_that_never_reports_is_alive_until_its_lock_runs_out() -> None:
    signs = look(None, 0.0, report=None)
    assert lives(signs, DURATION - 1)
    assert not lives(signs, DURATION)


def test_a_heartbeat_makes_up_for_a_clock_that_is_hours_wrong() -> None:
    signs = look(None, 0.0, report=-7200.0)
    signs = look(signs, 30.0, version=1, report=-7170.0)
    assert lives(signs, 30.0)


def test_a_leader_that_fell_silent_is_gone_after_the_quiet_time() -> None:
    signs = look(look(None, 0.0), 30.0, version=1, report=30.0)
    signs = look(signs, 89.0, version=1, report=30.0)
    assert lives(signs, 89.0)
    assert not lives(signs, 90.0)


def test_another_worker_that_takes_the_lock_is_alive() -> None:
    signs = observe_leader(look(None, 0.0), lock(owner="second"), int(WALL - 500), 100.0, WALL + 100)
    assert lives(signs, 100.0)


def test_nobody_leads_without_a_lock() -> None:
    assert not lives(observe_leader(look(None, 0.0), None, None, 1.0, WALL), 1.0)


@given(st.lists(st.floats(0.1, 30.0), min_size=1, max_size=50), st.floats(-1e6, 1e6))
def test_a_leader_that_heartbeats_every_30_seconds_is_never_given_up(gaps: list[float], skew: float) -> None:
    now, signs = 0.0, observe_leader(None, lock(), int(WALL), 0.0, WALL + skew)
    for version, gap in enumerate(gaps, 1):
        now += gap
        signs = observe_leader(signs, lock(version), int(WALL), now, WALL + skew + now)
        assert lives(signs, now)


@given(st.lists(st.floats(0.1, 30.0), min_size=1, max_size=50), st.booleans())
def test_a_leader_that_gives_no_sign_is_given_up_in_the_end(gaps: list[float], reports: bool) -> None:
    now, signs = 0.0, look(None, 0.0, report=0.0 if reports else None)
    for gap in gaps:
        now += gap
        signs = look(signs, now, report=0.0 if reports else None)
        assert lives(signs, now) == (now < (QUIET if reports else DURATION))
