"""Looks at a lease table until each owner is known to be alive or dead."""

from __future__ import annotations

import time

from kainite.base.checkpoint import Checkpoint
from kainite.cli.observed_leases import lease_table, observe_until_decided, stream_of
from kainite.leases.administration.report import Pulse
from kainite.settings import load
from support.lease_commands import LeaseCommands

A, B = "shardId-000000000000", "shardId-000000000001"


def test_a_lease_that_is_renewed_has_an_owner_who_is_alive(world: LeaseCommands) -> None:
    settings = load(world.properties)
    with world.renewing(world.hold(A, Checkpoint("5"))):
        scan, rows = observe_until_decided(lease_table(settings), settings, 30.0)

    assert [lease.key for lease in scan] == [A]
    assert [(row.shard, row.pulse) for row in rows] == [(A, Pulse.FRESH)]


def test_a_limit_ends_the_look_undecided(world: LeaseCommands) -> None:
    settings = load(world.properties)
    world.hold(A)
    began = time.monotonic()

    _, rows = observe_until_decided(lease_table(settings), settings, 0.0)

    assert [row.pulse for row in rows] == [Pulse.UNKNOWN]
    assert time.monotonic() - began < settings.leases.failover


def test_lags_are_measured_with_a_stream_only(world: LeaseCommands) -> None:
    settings = load(world.properties)
    world.hold(B)
    table = lease_table(settings)

    (without,) = observe_until_decided(table, settings, 0.0)[1]
    (with_stream,) = observe_until_decided(table, settings, 0.0, stream_of(settings))[1]

    assert (without.lag_millis, without.lag_cause) == (None, None)
    assert (with_stream.lag_millis, with_stream.lag_cause) != (None, None)
