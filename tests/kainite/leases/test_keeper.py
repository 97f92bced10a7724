"""A keeper on a real table and stream: gains, losses, checkpoints, releases, and the end of shards."""

from __future__ import annotations

import asyncio

import pytest

from kainite.base.checkpoint import SHARD_END, TRIM_HORIZON, Checkpoint
from kainite.base.errors import LeaseLostError, StreamError
from kainite.kinesis.client import StreamClient
from kainite.kinesis.shards import Shard
from kainite.leases.keeper import HeldLease, LeaseKeeper, Lost
from kainite.leases.streams import ReadStream, only
from kainite.leases.table.lease_table import LeaseTable
from kainite.leases.table.request import LeaseRequest, RequestKind
from kainite.observe.meter import Meter
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


async def test_a_new_application_holds_every_shard_at_once(keep: Keep, table: LeaseTable) -> None:
    async with running(keep()) as keeper:
        held = await gain_all(keeper, 2)
    assert held.keys() == {FIRST, SECOND}
    assert all(lease.checkpoint == TRIM_HORIZON for lease in held.values())
    assert all(lease.owner == "me" for lease in table.scan())


async def test_shards_to_be_read_are_known_while_their_leases_leave_no_hash_key_uncovered(keep: Keep) -> None:
    keeper = keep()
    assert keeper.to_be_read is None
    async with running(keeper):
        held = await gain_all(keeper, 2)
        assert keeper.to_be_read == {FIRST, SECOND}
        await keeper.checkpoint(held[FIRST], SHARD_END)
    async with running(keep()) as keeper:
        await gain_all(keeper, 1)
        assert keeper.to_be_read is None, "the children of the first shard have no leases"


async def test_shards_to_be_read_are_unknown_from_when_a_stream_is_added_until_the_next_scan(
    keep: Keep, table: LeaseTable, stream: StreamClient
) -> None:
    keeper, same, leases = keep(), only(stream, STREAM), LeaseSettings("a", table.name, "me")
    async with running(keeper):
        await gain_all(keeper, 2)
        keeper.reload(leases, STREAM, same)
        assert keeper.to_be_read == frozenset({FIRST, SECOND})
        keeper.reload(leases, STREAM, {**same, "1:more:1": ReadStream(stream, STREAM)})
        assert keeper.to_be_read is None


async def test_checkpoints_survive_a_crash_and_the_same_worker_goes_on_at_once(keep: Keep) -> None:
    async with running(keep()) as keeper:
        held = await gain_all(keeper, 2)
        await keeper.checkpoint(held[FIRST], Checkpoint("17"))
        assert held[FIRST].checkpoint == Checkpoint("17")
    async with running(keep()) as keeper:
        assert (await gain_all(keeper, 2))[FIRST].checkpoint == Checkpoint("17")


async def test_another_worker_waits_for_the_failover_time_after_a_crash(keep: Keep) -> None:
    async with running(keep()) as keeper:
        await gain_all(keeper, 2)
    clock = Clock()
    sink = MetricSink()
    heir = keep("heir", failover=30.0, clock=clock, meter=Meter(sink))
    async with running(heir):
        await tells_nothing(heir, sink)
    clock.time += 30.0
    async with running(heir):
        held = await gain_all(heir, 2)
    assert all(lease.lease.switches == 1 for lease in held.values())


async def test_after_a_clean_exit_another_worker_need_not_wait(keep: Keep, table: LeaseTable) -> None:
    async with running(keep()) as keeper:
        await gain_all(keeper, 2)
    await keeper.close()
    assert [lease.owner for lease in table.scan()] == [None, None]
    async with running(keep("heir")) as heir:
        await gain_all(heir, 2)


async def test_a_worker_takes_no_more_than_its_limit_and_another_takes_the_rest(keep: Keep) -> None:
    async with running(keep(limit=1)) as one:
        mine = await gain(one)
        async with running(keep("two")) as two:
            assert {mine.shard_id, (await gain(two)).shard_id} == {FIRST, SECOND}


async def test_a_keeper_knows_for_how_long_the_table_has_not_answered(keep: Keep) -> None:
    clock = Clock()
    keeper = keep(clock=clock)
    assert keeper.seconds_since_round is None
    async with running(keeper):
        await until(lambda: keeper.seconds_since_round is not None)
    clock.time += 7
    assert keeper.seconds_since_round == 7


async def test_a_lease_that_another_took_is_told_lost_and_takes_no_checkpoint(keep: Keep, table: LeaseTable) -> None:
    async with running(keep()) as keeper:
        held = await gain_all(keeper, 2)
        stolen = table.take(held[FIRST].lease, "thief")
        assert stolen is not None
        with pytest.raises(LeaseLostError, match=FIRST):
            await keeper.checkpoint(held[FIRST], Checkpoint("17"))
        assert await event_of(keeper) == Lost(held[FIRST])
        assert table.get(FIRST) == stolen
        await keeper.checkpoint(held[SECOND], Checkpoint("18"))


async def test_a_lease_lost_and_regained_takes_checkpoints_of_the_new_acquisition_only(
    keep: Keep, table: LeaseTable
) -> None:
    async with running(keep()) as keeper:
        old = (await gain_all(keeper, 2))[FIRST]
        stolen = table.take(old.lease, "thief")
        assert stolen is not None
        with pytest.raises(LeaseLostError):
            await keeper.checkpoint(old, Checkpoint("17"))
        assert await event_of(keeper) == Lost(old)
        table.evict(stolen)
        new = await gain(keeper)
        assert new.shard_id == FIRST
        with pytest.raises(LeaseLostError):
            await keeper.checkpoint(old, Checkpoint("17"))
        await keeper.checkpoint(new, Checkpoint("18"))
        stored = table.get(FIRST)
        assert stored is not None
        assert stored.checkpoint == Checkpoint("18")


async def test_a_released_lease_is_left_to_others_for_a_while(keep: Keep, table: LeaseTable) -> None:
    sink = MetricSink()
    async with running(keep(meter=Meter(sink))) as keeper:
        held = await gain_all(keeper, 2)
        await keeper.release(held[FIRST], pause=60.0)
        await keeper.release(held[FIRST])
        with pytest.raises(LeaseLostError):
            await keeper.checkpoint(held[FIRST], Checkpoint("17"))
        await tells_nothing(keeper, sink)
        stored = table.get(FIRST)
        assert stored is not None
        assert stored.owner is None


async def test_a_released_lease_is_taken_again_at_once_without_a_pause(keep: Keep) -> None:
    async with running(keep()) as keeper:
        held = await gain_all(keeper, 2)
        await keeper.release(held[FIRST])
        again = await gain(keeper)
        assert again.shard_id == FIRST
        assert again is not held[FIRST]


async def end(keeper: LeaseKeeper, held: HeldLease, *children: Shard) -> None:
    await keeper.shard_ended(held, children)
    await keeper.checkpoint(held, SHARD_END)
    await keeper.release(held)


async def test_the_children_of_a_split_start_when_the_parent_is_done_and_then_its_lease_goes(
    keep: Keep, table: LeaseTable, double: KinesisDouble
) -> None:
    sink = MetricSink()
    async with running(keep(meter=Meter(sink))) as keeper:
        parent = (await gain_all(keeper, 2))[FIRST]
        children = [Shard(child, (FIRST,)) for child in double.split(FIRST)]
        await keeper.shard_ended(parent, children)
        await tells_nothing(keeper, sink)
        await keeper.checkpoint(parent, SHARD_END)
        await tells_nothing(keeper, sink)  # the parent's record processor is still ending
        await keeper.release(parent)
        started = await gain_all(keeper, 2)
        assert started.keys() == {child.id for child in children}
        assert table.get(FIRST) is not None
        for held in started.values():
            await keeper.checkpoint(held, Checkpoint("7"))
        await until(lambda: table.get(FIRST) is None)


async def test_the_child_of_a_merge_starts_after_both_parents(keep: Keep, double: KinesisDouble) -> None:
    sink = MetricSink()
    async with running(keep(meter=Meter(sink))) as keeper:
        parents = await gain_all(keeper, 2)
        child = Shard(double.merge(FIRST, SECOND), (FIRST, SECOND))
        assert keeper.behind_parents == frozenset()
        await end(keeper, parents[SECOND], child)
        await tells_nothing(keeper, sink)
        await until(lambda: keeper.behind_parents == {child.id})
        await end(keeper, parents[FIRST], child)
        started = await gain(keeper)
        assert (started.shard_id, started.checkpoint) == (child.id, TRIM_HORIZON)
        await until(lambda: keeper.behind_parents == frozenset())


async def test_a_crash_between_the_childrens_leases_and_the_shards_end_loses_nothing(
    keep: Keep, double: KinesisDouble
) -> None:
    async with running(keep()) as keeper:
        parent = (await gain_all(keeper, 2))[FIRST]
        children = [Shard(child, (FIRST,)) for child in double.split(FIRST)]
        await keeper.shard_ended(parent, children)
    async with running(keep()) as keeper:
        again = await gain_all(keeper, 2)
        assert again.keys() == {FIRST, SECOND}
        await end(keeper, again[FIRST], *children)
        assert (await gain_all(keeper, 2)).keys() == {child.id for child in children}


async def test_a_stream_that_fails_at_first_is_tried_again(keep: Keep, double: KinesisDouble) -> None:
    double.fail("ListShards", "LimitExceededException", times=3)
    async with running(keep()) as keeper:
        await gain_all(keeper, 2)


async def test_what_waiting_does_not_mend_ends_the_keeper(keep: Keep, double: KinesisDouble) -> None:
    double.fail("ListShards", "ResourceNotFoundException")
    with pytest.raises(StreamError, match="does not exist"):
        await asyncio.wait_for(keep().run(), 10)


async def test_what_passes_is_waited_for_however_often_it_fails(keep: Keep, double: KinesisDouble) -> None:
    double.fail("ListShards", "LimitExceededException", times=20)
    async with running(keep(limit=1)) as keeper:
        assert await gain(keeper)


async def test_handing_over_what_nobody_asked_for_releases_it(keep: Keep, table: LeaseTable) -> None:
    async with running(keep(limit=1)) as keeper:
        held = await gain(keeper)
    await keeper.hand_over(held)
    await keeper.hand_over(held)
    assert set(owners(table).values()) == {None}


async def test_a_worker_that_leaves_in_a_hand_over_leaves_the_lease_to_the_next(keep: Keep, table: LeaseTable) -> None:
    async with running(keep(limit=1)) as keeper:
        held = await gain(keeper)
    table.handoff(held.lease, "new")
    await keeper.close()
    stored = table.get(held.shard_id)
    assert stored is not None
    assert (stored.owner, stored.checkpoint_owner) == ("new", None)


@pytest.mark.parametrize("moved", [False, True])
async def test_a_hand_over_for_which_the_table_is_out_of_reach_leaves_no_lease_without_a_reader(
    keep: Keep, table: LeaseTable, moved: bool
) -> None:
    clock = Clock()
    async with running(keep(clock=clock)) as keeper:
        held = (await gain_all(keeper, 2))[FIRST]
        if moved:
            held.moving = LeaseRequest("1", RequestKind.MOVE, "ada", "other")
        else:
            held.hand_over_by = clock.time + 300
        async with held.lock:  # a write that is not answered
            clock.advance(59.99)
            await keeper.hand_over(held)
        assert held not in keeper.held
        assert (await event_of(keeper)).lease is held


async def test_a_hand_over_that_the_table_does_not_know_any_more_gives_the_lease_back(
    keep: Keep, table: LeaseTable
) -> None:
    clock = Clock()
    async with running(keep(clock=clock)) as keeper:
        held = (await gain_all(keeper, 2))[FIRST]
        held.hand_over_by = clock.time + 300  # the leader has begun it, and has given the lease back here
        await keeper.hand_over(held)
        assert held not in keeper.held, "its consumer has ended: renewed, it would be held and not read"
