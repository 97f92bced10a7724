"""The leases that a worker believes it holds: expiry, losses, releases, namesakes, and the measured throughput."""

from __future__ import annotations

from math import inf

import pytest

from kainite.base.errors import LeaseLostError
from kainite.leases.holding.held_leases import (
    CurrentSettings,
    Gained,
    HandingOver,
    HeldLease,
    HeldLeases,
    LeaseEvent,
    Lost,
)
from kainite.leases.table.lease import Lease
from kainite.observe.meter import SILENT
from kainite.settings import LeaseSettings
from support.keepers import FIRST, STREAM, Clock

FAILOVER, HANDOFF = 10.0, 30.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def settings() -> CurrentSettings:
    return CurrentSettings(LeaseSettings("app", "t", "me", failover=FAILOVER, handoff_timeout=HANDOFF), STREAM, {})


@pytest.fixture
def held_leases(settings: CurrentSettings, clock: Clock) -> HeldLeases:
    return HeldLeases(settings, clock, SILENT)


def hold(held_leases: HeldLeases, began: float, counter: int = 1) -> HeldLease:
    held_leases.add(Lease(FIRST, "me", counter), began)
    (held,) = held_leases.all
    return held


def told(held_leases: HeldLeases) -> list[LeaseEvent]:
    return [held_leases.events.get_nowait() for _ in range(held_leases.events.qsize())]


def test_a_lease_expires_the_failover_time_after_the_beginning_of_its_last_write(
    held_leases: HeldLeases, clock: Clock
) -> None:
    held = hold(held_leases, clock() - 4.0)
    assert held_leases.seconds_left(held) == FAILOVER - 4.0
    held_leases.record_write(held, Lease(FIRST, "me", 2), clock() - 1.0)
    assert held_leases.seconds_left(held) == FAILOVER - 1.0
    clock.advance(FAILOVER - 1.0)
    with pytest.raises(LeaseLostError):
        held_leases.ensure_held(held)
    assert held not in held_leases


def test_a_loss_is_reported_once_and_only_of_a_shard_that_was_started(held_leases: HeldLeases, clock: Clock) -> None:
    held_leases.lose(hold(held_leases, clock()))
    assert told(held_leases) == []
    held = hold(held_leases, clock())
    held_leases.start(held)
    held_leases.lose(held)
    held_leases.lose(held)
    assert told(held_leases) == [Gained(held), Lost(held)]
    assert held_leases.wake.is_set()


def test_an_earlier_acquisition_of_the_same_lease_is_not_held(held_leases: HeldLeases, clock: Clock) -> None:
    old = hold(held_leases, clock())
    held_leases.lose(old)
    new = hold(held_leases, clock(), 3)
    held_leases.ensure_held(new)
    with pytest.raises(LeaseLostError):
        held_leases.ensure_held(old)
    assert new in held_leases


def test_a_released_lease_is_not_to_be_taken_until_it_is_released_in_the_table_and_its_pause_is_over(
    held_leases: HeldLeases, clock: Clock
) -> None:
    held = hold(held_leases, clock())
    assert held_leases.begin_release(held)
    assert not held_leases.begin_release(held)
    assert held_leases.pauses() == {FIRST: inf}
    held_leases.end_release(FIRST, 5.0)
    assert held_leases.pauses() == {FIRST: 5.0}
    clock.advance(5.0)
    assert held_leases.pauses() == {}
    assert told(held_leases) == []


def test_a_hand_over_is_reported_once_with_its_time_limit(held_leases: HeldLeases, clock: Clock) -> None:
    held = hold(held_leases, clock())
    held_leases.start(held)
    for counter in (2, 3):
        held_leases.record_write(held, Lease(FIRST, "new", counter, checkpoint_owner="me"), clock())
    assert held.hand_over_by == clock() + HANDOFF
    assert told(held_leases) == [Gained(held), HandingOver(held)]


@pytest.mark.parametrize("handoff", [True, False])
def test_a_failed_write_is_a_loss_and_so_is_a_hand_over_where_it_is_disabled(
    settings: CurrentSettings, clock: Clock, handoff: bool
) -> None:
    settings.leases = LeaseSettings("app", "t", "me", failover=FAILOVER, handoff=handoff)
    held_leases = HeldLeases(settings, clock, SILENT)
    held = hold(held_leases, clock())
    held_leases.record_write(held, None if handoff else Lease(FIRST, "new", 2, checkpoint_owner="me"), clock())
    assert held not in held_leases


@pytest.mark.parametrize(
    ("doubtful", "counter", "namesake"), [(False, 3, False), (False, 4, True), (True, 4, False), (True, 5, True)]
)
def test_a_lost_lease_that_goes_on_in_this_workers_name_is_a_namesakes(
    held_leases: HeldLeases, clock: Clock, doubtful: bool, counter: int, namesake: bool
) -> None:
    held = hold(held_leases, clock(), 3)
    held.doubtful = doubtful  # the write whose answer was not seen may have raised the counter by one
    held_leases.lose(held)
    assert held_leases.namesakes([Lease(FIRST, "me", counter)]) == ({FIRST} if namesake else set())
    assert held_leases.namesakes([Lease(FIRST, "other", counter)]) == set()


def test_another_daemon_is_told_where_a_lost_lease_goes_on_and_not_after_a_take_without_an_answer(
    held_leases: HeldLeases, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    held_leases.lose(hold(held_leases, clock(), 3))
    for counter, told in ((4, 0), (4, 0), (5, 1), (6, 1), (6, 1)):
        assert held_leases.namesakes([Lease(FIRST, "me", counter)]) == {FIRST}, "it is left alone until it expires"
        assert len([record for record in caplog.records if "another daemon" in record.getMessage()]) == told


def test_throughput_is_an_average_in_which_each_time_weighs_half_of_what_was_before() -> None:
    held = HeldLease(Lease("shard"), 0.0)
    held.count_bytes(10 * 1024)
    held.measure(0.0)
    assert held.throughput is None
    for second in (1.0, 2.0):
        held.count_bytes(8 * 1024)
        held.measure(second)
    assert held.throughput == pytest.approx(8.0)
    held.measure(6.0)
    assert held.throughput == pytest.approx(4.0)
