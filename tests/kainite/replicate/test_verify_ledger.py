"""The comparison's side of the ledger, in a real target of each kind."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from kainite.base.errors import TargetError
from kainite.replicate.stop_ledger import StopState
from kainite.replicate.verify_ledger import NO_OUTCOME, VerifyLedger, VerifyOutcome, latest_outcome
from support.verify_sessions import KINDS, run, session_of, target_of

LOG = "log/0"
OUTCOME = VerifyOutcome("2026-11-23T10:00:00+00:00", "0/10", "equal", 3, 400, 0, 0, 0, 0, 1.5)


@pytest.fixture(params=KINDS)
def target(request: pytest.FixtureRequest) -> str:
    return target_of(request.param, request)


def test_one_comparison_runs_at_a_time(target: str) -> None:
    with session_of(target) as one, session_of(target) as other:
        VerifyLedger(one, LOG).begin()
        with pytest.raises(TargetError, match="another kainite verify of log/0 runs"):
            VerifyLedger(other, LOG).begin()
        VerifyLedger(other, "log/1").begin()


def test_the_latest_result_is_kept(target: str) -> None:
    with session_of(target) as connection:
        assert latest_outcome(connection, LOG) is None
        ledger = VerifyLedger(connection, LOG)
        ledger.begin()
        ledger.ask()
        assert latest_outcome(connection, LOG) is None
        ledger.note(OUTCOME)
        ledger.ask()
        assert latest_outcome(connection, LOG) == replace(OUTCOME, good_at=OUTCOME.ended_at)
        assert ledger.held_ms() is None


def test_a_result_keeps_when_one_last_passed_and_how_often_they_are_made(target: str) -> None:
    bad = replace(OUTCOME, verdict="different", ended_at="2026-11-24T10:00:00+00:00")
    with session_of(target) as connection:
        ledger = VerifyLedger(connection, LOG)
        ledger.note_repeated(86_400.0, "the source is away")
        assert latest_outcome(connection, LOG) == replace(NO_OUTCOME, every=86_400.0, trouble="the source is away")
        ledger.note(OUTCOME)
        ledger.note(bad)
        assert latest_outcome(connection, LOG) == replace(bad, good_at=OUTCOME.ended_at, every=86_400.0)
        ledger.note_repeated(None)
        assert latest_outcome(connection, LOG) == replace(bad, good_at=OUTCOME.ended_at)


def test_whoever_waits_is_told_why_it_was_in_vain(target: str) -> None:
    stop = threading.Event()
    with session_of(target) as connection:
        ledger = VerifyLedger(connection, LOG, stop)
        ledger.begin()
        ledger.ask()
        with pytest.raises(TargetError, match="no apply job of this log has answered"):
            ledger.awaits(StopState.ATTENDED, 0.0, lambda: None)
        run(connection, "UPDATE kainite_verify SET state = 'attended', generation = 4")
        assert not ledger.awaits(StopState.STOPPED, 0.0, lambda: None)  # no apply job has this generation
        run(connection, "INSERT INTO kainite_fence VALUES (%s, 4, 1)", LOG)
        with pytest.raises(TargetError, match="has not come to the point in time"):
            ledger.awaits(StopState.STOPPED, 0.0, lambda: None)
        stop.set()
        with pytest.raises(TargetError, match="was stopped"):
            ledger.awaits(StopState.STOPPED, 0.0, lambda: None)
        ledger.end()
        assert not ledger.awaits(StopState.STOPPED, 0.0, lambda: None)
