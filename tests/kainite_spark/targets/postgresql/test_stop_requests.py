"""The apply job's side of the ledger, in a real target."""

from __future__ import annotations

import psycopg
import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.replicate.stop_ledger import StopState
from kainite.replicate.verify_ledger import VerifyLedger
from kainite_spark.targets.postgresql.stop_requests import PostgresStopRequests
from kainite_spark.targets.stop_requests import StopRequest

LOG = "log/0"


def test_each_step_is_made_once_and_in_order(postgres: str) -> None:
    requests = PostgresStopRequests(postgres, LOG)
    assert requests.look() is None  # there is no table yet
    with psycopg.connect(postgres, autocommit=True) as connection:
        ledger = VerifyLedger(connection, LOG)
        ledger.begin()
        assert requests.look() is None
        ledger.ask(0x20)
        assert requests.look() == StopRequest(1, StopState.ASKED, 0x20, None, None, 0)
        assert not requests.stopped(1, 7, 3, ())
        assert requests.attend(1, 7)
        assert not requests.attend(1, 8)
        assert ledger.set_position(0x50)
        assert requests.look() == StopRequest(1, StopState.ATTENDED, 0x20, 0x50, 7, 0)
        assert not requests.stopped(1, 8, 3, ())
        assert requests.stopped(1, 7, 3, ())
        requests.go_on(1, 8, 5)
        assert requests.look() is not None
        requests.go_on(1, 7, 5)
        assert requests.look() is None
        assert ledger.held_ms() == 5
    requests.close()


def test_a_target_that_does_not_answer_is_told(postgres: str) -> None:
    requests = PostgresStopRequests(postgres.replace("/test_", "/no_test_"), LOG)
    with pytest.raises(TargetUnavailableError):
        requests.look()
