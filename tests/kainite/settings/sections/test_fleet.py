"""What follows from the time-out of the fleet."""

from __future__ import annotations

from kainite.settings import FleetSettings
from kainite.settings.sections.fleet import ping_of


def test_the_default_is_that_of_the_default_timeout_in_which_one_ping_may_be_lost() -> None:
    fleet = FleetSettings("table")

    assert fleet.ping == ping_of(fleet.timeout) == fleet.timeout / 2
