"""The apply job's side of the ledger, in a real target of each kind."""

from __future__ import annotations

import pytest

from kainite.base.errors import TargetUnavailableError
from kainite.replicate.stop_ledger import StopState
from kainite.replicate.verify_ledger import VerifyLedger
from kainite_spark.targets.opening import open_stops
from kainite_spark.targets.stop_requests import StopRequest, StopRequests
from support.verify_sessions import KINDS, session_of

LOG = "log/0"


def requests_of(url: str) -> StopRequests:
    found = open_stops(url, LOG)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_each_step_is_made_once_and_in_order(kind: str, request: pytest.FixtureRequest) -> None:
    url = str(request.getfixturevalue(kind))
    requests = requests_of(url)
    assert requests.look() is None  # there is no table yet
    with session_of(url) as connection:
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


@pytest.mark.parametrize("kind", KINDS)
def test_a_target_that_does_not_answer_is_told(kind: str, request: pytest.FixtureRequest) -> None:
    requests = requests_of(str(request.getfixturevalue(kind)).replace("/test_", "/no_test_"))
    with pytest.raises(TargetUnavailableError):
        requests.look()
