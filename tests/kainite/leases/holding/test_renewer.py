"""Renewals, and the hand-overs that a renewal notices."""

from __future__ import annotations

import asyncio
import math

import pytest

from kainite.base.checkpoint import TRIM_HORIZON, Checkpoint
from kainite.base.errors import LeaseLostError
from kainite.leases.holding.renewer import renewal_interval
from kainite.leases.keeper import HandingOver, Lost
from kainite.leases.stance import Stance
from kainite.leases.table.lease_table import LeaseTable
from support.keepers import (
    FIRST,
    SECOND,
    Clock,
    Keep,
    event_of,
    gain,
    gain_all,
    running,
    until,
)


@pytest.mark.parametrize(("failover", "interval"), [(10.0, 3.308), (1.0, 0.308), (0.06, 0.01)])
def test_renewals_are_a_third_of_the_failover_time_apart_and_never_less_than_a_sixth(
    failover: float, interval: float
) -> None:
    assert renewal_interval(failover) == pytest.approx(interval, abs=0.001)


async def test_renewing_keeps_a_lease_beyond_the_failover_time(keep: Keep, table: LeaseTable) -> None:
    failover = 3.0  # long enough that a loaded machine renews in time
    async with running(keep(failover=failover)) as keeper:
        await gain_all(keeper, 2)
        counters = {lease.key: lease.counter for lease in table.scan()}
        renewals = math.ceil(failover / renewal_interval(failover))
        async with running(keep("other", failover=failover)) as other:
            telling = asyncio.create_task(other.next_event())
            await until(lambda: all(lease.counter > counters[lease.key] + renewals for lease in table.scan()))
            assert not telling.done()
            telling.cancel()
        assert all(lease.counter > counters[lease.key] for lease in table.scan())
        assert len(keeper.held) == 2


async def test_renewal_notices_a_lease_that_another_took(keep: Keep, table: LeaseTable) -> None:
    async with running(keep(failover=1.5)) as keeper:
        held = await gain_all(keeper, 2)
        await until(lambda: table.take(table.get(FIRST) or held[FIRST].lease, "thief") is not None)
        event = await event_of(keeper)
        assert event == Lost(held[FIRST])


async def test_a_lease_not_renewed_for_the_failover_time_is_lost_here_before_anybody_takes_it(
    keep: Keep, table: LeaseTable
) -> None:
    clock = Clock()
    async with running(keep(failover=10.0, clock=clock)) as keeper:
        held = await gain_all(keeper, 2)
        before = table.get(FIRST)
        clock.time += 10.0
        with pytest.raises(LeaseLostError):
            await keeper.checkpoint(held[FIRST], Checkpoint("17"))
        assert await event_of(keeper) == Lost(held[FIRST])
        assert before is not None
        stored = table.get(FIRST)
        assert stored is not None
        assert stored.checkpoint == TRIM_HORIZON


async def test_checkpoints_given_up_halfway_cost_no_lease(keep: Keep, table: LeaseTable) -> None:
    async with running(keep()) as keeper:
        held = (await gain_all(keeper, 2))[FIRST]
        for number in range(10):
            asking = asyncio.create_task(keeper.checkpoint(held, Checkpoint(str(100 + number))))
            await asyncio.sleep(0.001 * number)  # not a wait: each call is cancelled at another moment
            asking.cancel()
            await keeper.checkpoint(held, Checkpoint(str(200 + number)))
        stored = table.get(FIRST)
        assert stored is not None
        assert stored.checkpoint == held.checkpoint == Checkpoint("209")


async def test_renewals_store_what_was_measured(keep: Keep, table: LeaseTable) -> None:
    async with running(keep(failover=3.0)) as keeper:
        held = await gain_all(keeper, 2)

        def stored() -> float | None:
            # More arrives all the time, so whichever renewal measures finds some.
            held[FIRST].count_bytes(1024)
            return next(lease.throughput for lease in table.scan() if lease.key == FIRST)

        await until(lambda: (stored() or 0) > 0)


async def test_a_hand_over_is_told_checkpointed_through_and_ended_by_the_old_owner(
    keep: Keep, table: LeaseTable
) -> None:
    async with running(keep(failover=1.5)) as old:
        held = (await gain_all(old, 2))[FIRST]
        async with running(keep("new", stance=Stance.ASSIGNED)) as new:
            await until(lambda: table.handoff(table.get(FIRST) or held.lease, "new") is not None)
            assert await event_of(old) == HandingOver(held)
            await old.checkpoint(held, Checkpoint("17"))
            assert new.held == ()
            await old.hand_over(held)
            gained = await gain(new)
            assert (gained.shard_id, gained.checkpoint) == (FIRST, Checkpoint("17"))
            assert gained.lease.owner == "new"
            with pytest.raises(LeaseLostError):
                await old.checkpoint(held, Checkpoint("18"))
            assert {lease.shard_id for lease in old.held} == {SECOND}


async def test_a_hand_over_ends_though_the_answer_to_the_renewal_before_was_lost(keep: Keep, table: LeaseTable) -> None:
    clock = Clock()
    async with running(keep(clock=clock)) as keeper:
        held = (await gain_all(keeper, 2))[FIRST]
        handed = table.handoff(held.lease, "new")
        assert handed is not None
        async with held.lock:  # no renewal of the keeper's own comes between
            adopted = table.renew(held.lease)
            assert adopted is not None
            held.lease, held.hand_over_by, held.doubtful = adopted, clock.time + 300, True
            assert table.renew(adopted) is not None  # its answer is lost
        await keeper.hand_over(held)
    stored = table.get(FIRST)
    assert stored is not None
    assert (stored.owner, stored.checkpoint_owner) == ("new", None)


async def test_a_hand_over_that_takes_too_long_is_a_loss(keep: Keep, table: LeaseTable) -> None:
    async with running(keep(failover=1.5, handoff_timeout=0.1)) as old:
        held = (await gain_all(old, 2))[FIRST]
        await until(lambda: table.handoff(table.get(FIRST) or held.lease, "new") is not None)
        assert [await event_of(old), await event_of(old)] == [HandingOver(held), Lost(held)]


async def test_a_hand_over_is_a_loss_where_it_is_disabled(keep: Keep, table: LeaseTable) -> None:
    async with running(keep(failover=1.5, handoff=False)) as old:
        held = (await gain_all(old, 2))[FIRST]
        await until(lambda: table.handoff(table.get(FIRST) or held.lease, "new") is not None)
        assert await event_of(old) == Lost(held)
