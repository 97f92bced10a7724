"""When the program of a duty is started again."""

from __future__ import annotations

import pytest

from kainite.fleet.model.records import Restart, Work
from kainite.fleet.model.restarts import Restarts, Verdict

AGAIN, DONE, ERROR = Verdict.AGAIN, Verdict.DONE, Verdict.ERROR


@pytest.mark.parametrize(
    ("restart", "clean", "verdict"),
    [
        (Restart.ALWAYS, True, AGAIN),
        (Restart.ALWAYS, False, AGAIN),
        (Restart.ON_FAILURE, True, DONE),
        (Restart.ON_FAILURE, False, AGAIN),
        (Restart.NEVER, True, DONE),
        (Restart.NEVER, False, ERROR),
        (Restart.UNKNOWN, True, DONE),
        (Restart.UNKNOWN, False, ERROR),
    ],
)
def test_the_policy_decides(restart: Restart, clean: bool, verdict: Verdict) -> None:
    assert Restarts().ended(Work(restart=restart), 0.0, clean=clean).verdict is verdict


def test_the_pause_doubles_up_to_its_cap_and_then_comes_the_error() -> None:
    restarts, work = Restarts(), Work(backoff=1, backoff_max=4, tries=5)
    found = [restarts.ended(work, 10.0, clean=False) for _ in range(5)]
    assert [decision.due - 10 for decision in found[:4]] == [1, 2, 4, 4]
    assert [decision.verdict for decision in found] == [AGAIN] * 4 + [ERROR]


def test_failures_leave_the_window() -> None:
    restarts, work = Restarts(), Work(backoff=1, tries=3, window=100)
    for now in (0.0, 60.0, 120.0, 180.0):
        assert restarts.ended(work, now, clean=False).verdict is AGAIN
    assert restarts.ended(work, 181.0, clean=False).verdict is ERROR


def test_a_program_that_ends_cleanly_again_and_again_waits_longer_each_time_and_is_no_error() -> None:
    restarts, work = Restarts(), Work(backoff=1, backoff_max=4, tries=2, window=100)
    found = [restarts.ended(work, 10.0, clean=True) for _ in range(4)]
    assert [decision.due - 10 for decision in found] == [1, 2, 4, 4]
    assert {decision.verdict for decision in found} == {AGAIN}
    assert restarts.ended(work, 200.0, clean=True).due == 201
