"""What follows from the lease of the log's owner."""

from __future__ import annotations

import pytest

from kainite.settings import LogSettings
from kainite.settings.sections.log import heartbeat_of, poll_of


def test_the_defaults_are_those_of_the_default_lease() -> None:
    log = LogSettings("table", "owner")

    assert (log.heartbeat, log.poll) == (heartbeat_of(log.lease), poll_of(log.lease))


@pytest.mark.parametrize("lease", [0.2, 1.0, 10.0, 3_600.0])
def test_two_heartbeats_may_be_lost_and_requests_wait_for_a_second_at_most(lease: float) -> None:
    assert 3 * heartbeat_of(lease) < lease
    assert 0 < poll_of(lease) <= 1.0
