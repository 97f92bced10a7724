"""What the log does not show yet of the units' statuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.log.format.entry import Outcome, UnitStatus
from kainite_spark.plan.unreported import StatusAndCause, Unreported

PLAIN: StatusAndCause = (UnitStatus.IN_PROGRESS, None)
FAILED = (UnitStatus.FAILED, "refused")
BLOCKED = (UnitStatus.BLOCKED, "waits for 0")


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([PLAIN, FAILED, BLOCKED]), st.booleans())))
def test_the_log_shows_what_is_so_after_each_report_and_hears_nothing_twice(
    changes: list[tuple[int, StatusAndCause, bool]],
) -> None:
    unreported, shown, now = Unreported(), dict.fromkeys(range(3), PLAIN), dict.fromkeys(range(3), PLAIN)
    for tid, status, report in changes:
        now[tid] = status
        unreported.changed(tid)
        for outcome in unreported.take(now.__getitem__) if report else ():
            assert shown[outcome.tid] != (outcome.status, outcome.cause)
            shown[outcome.tid] = (outcome.status, outcome.cause)
        assert not report or shown == now


@pytest.mark.parametrize(("status", "cause"), [FAILED, BLOCKED])
def test_an_outdated_status_is_taken_back_when_the_unit_runs(status: UnitStatus, cause: str) -> None:
    unreported = Unreported()
    unreported.published(1, status, cause)
    unreported.examined(1)
    unreported.examined(2)
    assert unreported.take(lambda _: PLAIN) == (Outcome(1, UnitStatus.IN_PROGRESS),)
    assert unreported.take(lambda _: PLAIN) == ()


def test_a_decision_in_the_log_is_not_told_to_the_log() -> None:
    unreported = Unreported()
    unreported.published(1, *FAILED)
    unreported.forget(1)
    unreported.changed(1)
    assert unreported.take(lambda _: PLAIN) == ()


def test_a_unit_that_is_gone_is_told_once_and_nothing_else_of_it() -> None:
    unreported, gone = Unreported(), Outcome(1, UnitStatus.COMMITTED)
    unreported.changed(1)
    unreported.resolved(gone)
    assert unreported.take(lambda _: FAILED) == (gone,)
    assert unreported.take(lambda _: FAILED) == ()
