"""Writes to a held lease: as long as it is this worker's by its own clock."""

from __future__ import annotations

import pytest

from kainite.base.errors import LeaseTableUnavailableError
from kainite.leases.holding.held_leases import CurrentSettings, HeldLeases
from kainite.leases.holding.writing import write, writing
from kainite.leases.table.lease import Lease
from kainite.observe.meter import SILENT
from kainite.settings import LeaseSettings
from support.keepers import STREAM, Clock


def one_held(clock: Clock) -> HeldLeases:
    leases = HeldLeases(CurrentSettings(LeaseSettings("app", "t", "me", failover=10), STREAM, {}), clock, SILENT)
    leases.add(Lease("s", "me", 1), clock())
    return leases


async def test_a_write_that_raises_leaves_the_next_one_in_doubt() -> None:
    clock = Clock()
    leases = one_held(clock)
    (held,) = leases.all
    told: list[bool] = []

    def lost(doubtful: bool) -> Lease:
        told.append(doubtful)
        raise LeaseTableUnavailableError("away")

    def done(doubtful: bool) -> Lease:
        told.append(doubtful)
        return Lease("s", "me", 2)

    with pytest.raises(LeaseTableUnavailableError):
        await write(leases, held, lost, clock)
    await write(leases, held, done, clock)
    await write(leases, held, done, clock)
    assert told == [False, True, False]
    assert held.lease.counter == 2


async def test_nothing_is_written_to_a_lease_that_has_expired() -> None:
    clock = Clock()
    leases = one_held(clock)
    (held,) = leases.all
    clock.advance(11)
    async with held.lock:
        with pytest.raises(LeaseTableUnavailableError, match="within the failover time"):
            async with writing(leases, held):
                raise AssertionError("it is another worker's by now")
