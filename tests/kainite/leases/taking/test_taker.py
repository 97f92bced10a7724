"""The taker beside other workers: stealing, assignment, namesakes, and what a round measures."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import Any

import pytest

from kainite.base.checkpoint import SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import LeaseLostError
from kainite.kinesis.client import StreamClient
from kainite.leases.keeper import Gained, Lost
from kainite.leases.other_log import OtherLog
from kainite.leases.stance import Stance
from kainite.leases.streams import only
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.observe.meter import Meter
from kainite.observe.metric import CURRENT_LEASES, IS_LEADER, LOST_LEASES, NUM_WORKERS, TAKEN_LEASES
from kainite.settings import LeaseSettings
from support.keepers import (
    FIRST,
    SECOND,
    STREAM,
    Clock,
    Keep,
    MetricSink,
    event_of,
    gain,
    gain_all,
    owners,
    running,
    tells_nothing,
    until,
)
from support.kinesis_double import KinesisDouble


async def test_a_worker_that_abstains_leaves_the_leases_to_others(keep: Keep, table: LeaseTable) -> None:
    abstaining, sharing = keep("one", failover=1.5, stance=Stance.ABSTAIN), keep("two", failover=1.5)
    async with running(abstaining):
        await until(lambda: abstaining.seconds_since_round is not None)
        async with running(sharing):
            await gain_all(sharing, 2)
        assert abstaining.held == ()
    assert owners(table) == {FIRST: "two", SECOND: "two"}


@pytest.mark.parametrize("log", ["orders-log/1", ""], ids=["another log", "no units of work"])
async def test_a_worker_with_another_log_takes_nothing_and_says_so_until_the_first_one_has_stopped(
    keep: Keep, table: LeaseTable, caplog: pytest.LogCaptureFixture, log: str
) -> None:
    caplog.set_level(logging.INFO)
    one, two = keep("one", failover=4.0, log="orders-log/0"), keep("two", failover=4.0, steal=2, log=log)
    async with running(one):
        await gain_all(one, 2)
        sink = MetricSink()
        async with running(keep("three", failover=4.0, log=log, steal=2, meter=Meter(sink))) as three, running(two):
            await sink.more_rounds()
            assert three.other_log == OtherLog("one", "orders-log/0")
            assert (three.held, one.other_log) == ((), None)
            assert owners(table) == {FIRST: "one", SECOND: "one"}
            three.stop_taking()
            await one.close()
            await gain_all(two, 2)
            assert two.other_log is None
    told = [record.getMessage() for record in caplog.records]
    assert told.count("no lease taken: another worker collects into another log") == 2
    assert "leases taken again: no worker collects into another log any more" in told


async def test_a_worker_keeps_what_it_holds_beside_one_with_another_log_and_takes_no_more(
    keep: Keep, table: LeaseTable, dynamodb: Any
) -> None:
    """Shows what two workers do that began together and hold a lease each: both say so, and neither takes another."""
    sink = MetricSink()
    async with running(keep("one", failover=60.0, log="a/0", steal=2, meter=Meter(sink))) as one:
        held = await gain_all(one, 2)
        assert LeaseTable(dynamodb, table.name, "b/0").take(held[SECOND].lease, "two") is not None
        await until(lambda: one.other_log == OtherLog("two", "b/0"))
        table.put_new(Lease("free"))
        await sink.more_rounds()
        assert owners(table) == {FIRST: "one", SECOND: "two", "free": None}
        assert FIRST in {lease.shard_id for lease in one.held}


async def test_a_second_worker_steals_its_part_and_no_more(keep: Keep, table: LeaseTable) -> None:
    sinks = MetricSink(), MetricSink()
    async with running(keep("one", failover=1.5, steal=1, meter=Meter(sinks[0]))) as one:
        await gain_all(one, 2)
        async with running(keep("two", failover=1.5, steal=1, meter=Meter(sinks[1]))) as two:
            stolen = await gain(two)
            lost = await event_of(one)
            assert isinstance(lost, Lost)
            assert lost.lease.shard_id == stolen.shard_id
            for sink in sinks:
                await sink.more_rounds()
            assert sorted(map(str, owners(table).values())) == ["one", "two"]
            assert (len(one.held), len(two.held)) == (1, 1)


async def test_in_an_assigned_fleet_a_worker_takes_what_carries_its_name(keep: Keep, table: LeaseTable) -> None:
    for lease in (Lease(FIRST), Lease(SECOND, "other"), Lease("c", "me", checkpoint_owner="old"), Lease("d")):
        table.put_new(lease)
    async with running(keep(stance=Stance.ASSIGNED)) as keeper:
        free = table.get(FIRST)
        assert free is not None
        table.assign(free, "me")
        assert (await gain(keeper)).shard_id == FIRST
        handed = table.get("c")
        assert handed is not None
        table.assign(handed, "me")
        assert (await gain(keeper)).shard_id == "c"
    assert owners(table) == {FIRST: "me", SECOND: "other", "c": "me", "d": None}


async def test_an_assigned_lease_at_its_shards_end_is_held_in_silence(keep: Keep, table: LeaseTable) -> None:
    table.put_new(Lease(FIRST, "me", checkpoint=SHARD_END))
    async with running(keep(stance=Stance.ASSIGNED)) as keeper:
        await until(lambda: bool(keeper.held))
        table.put_new(Lease(SECOND, "me", checkpoint=TRIM_HORIZON))
        assert (await gain(keeper)).shard_id == SECOND


async def test_two_daemons_under_one_worker_id_come_to_rest_and_say_so(
    keep: Keep, table: LeaseTable, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    sinks = MetricSink(), MetricSink()
    async with running(keep("twin", failover=1.5, meter=Meter(sinks[0]))) as one:
        mine = await gain_all(one, 2)
        async with running(keep("twin", failover=1.5, meter=Meter(sinks[1]))) as two:
            await gain_all(two, 2)
            lost = [await event_of(one), await event_of(one)]
            assert {event.lease for event in lost} == set(mine.values())
            for sink in sinks:
                await sink.more_rounds()
            assert len(two.held) == 2
            assert one.held == ()
    assert {record.getMessage() for record in caplog.records} == {
        "another daemon runs under this worker id: give each its own workerId"
    }
    assert len(caplog.records) == 2


async def test_a_lease_that_was_lost_and_is_assigned_here_again_is_taken_when_no_namesake_renews_it(
    keep: Keep, table: LeaseTable
) -> None:
    clock = Clock()
    for key in (FIRST, SECOND):
        table.put_new(Lease(key, "me"))
    async with running(keep(failover=10.0, clock=clock, stance=Stance.ASSIGNED)) as keeper:
        held = (await gain_all(keeper, 2))[FIRST]
        stolen = table.take(held.lease, "thief")
        assert stolen is not None
        with pytest.raises(LeaseLostError):
            await keeper.checkpoint(held, Checkpoint("17"))
        assert await event_of(keeper) == Lost(held)
        table.assign(stolen, "me")
        await until(lambda: clock.advance(1.0) and held.shard_id in {each.shard_id for each in keeper.held})


async def test_a_worker_that_leaves_takes_nothing_more(keep: Keep, table: LeaseTable) -> None:
    sink = MetricSink()
    async with running(keep("one", steal=1, meter=Meter(sink))) as one:
        held = await gain_all(one, 2)
        one.stop_taking()
        for lease in held.values():
            await one.release(lease, pause=math.inf)
        table.put_new(Lease("given back by another"))
        await tells_nothing(one, sink)
        assert set(owners(table).values()) == {None}


async def test_a_lease_that_ran_out_here_and_nobody_took_is_taken_again(keep: Keep) -> None:
    clock = Clock()
    async with running(keep(failover=10.0, clock=clock)) as keeper:
        held = (await gain_all(keeper, 2))[FIRST]
        clock.time += 10.0
        with pytest.raises(LeaseLostError):
            await keeper.checkpoint(held, Checkpoint("17"))
        assert await event_of(keeper) == Lost(held)
        again = await gain(keeper)
        assert again.shard_id == FIRST
        await keeper.checkpoint(again, Checkpoint("17"))


async def test_other_settings_hold_from_the_next_round(keep: Keep, table: LeaseTable, stream: StreamClient) -> None:
    async with running(keep(limit=1)) as keeper:
        first = await gain(keeper)
        keeper.reload(LeaseSettings("other", "elsewhere", "another", failover=60.0), STREAM, only(stream, STREAM))
        second = await gain(keeper)
        assert {first.shard_id, second.shard_id} == {FIRST, SECOND}
        assert second.lease.owner == "me"


async def test_what_a_round_did_is_measured(keep: Keep, table: LeaseTable, double: KinesisDouble) -> None:
    sink = MetricSink()
    async with running(keep(failover=1.5, meter=Meter(sink))) as keeper:
        held = await gain_all(keeper, 2)
        await until(lambda: sink.values.get(CURRENT_LEASES) == 2)
        assert sink.values[NUM_WORKERS] == sink.values[IS_LEADER] == 1
        assert TAKEN_LEASES in sink.values
        await until(lambda: table.take(table.get(FIRST) or held[FIRST].lease, "thief") is not None)
        assert isinstance(await event_of(keeper), Lost)
        assert sink.values[LOST_LEASES] == 1


async def test_listing_that_fails_does_not_keep_a_worker_from_taking(
    keep: Keep, table: LeaseTable, double: KinesisDouble
) -> None:
    table.put_new(Lease(FIRST, "dead", 1))
    double.fail("ListShards", "LimitExceededException", times=1000)
    clock = Clock()
    keeper = keep(clock=clock, settings=replace(STREAM, list_shards_backoff=0.01))
    async with running(keeper):
        await until(lambda: keeper.seconds_since_round is not None)
        clock.time += 60.0
        event = await event_of(keeper)
        assert isinstance(event, Gained)
        assert event.lease.shard_id == FIRST
