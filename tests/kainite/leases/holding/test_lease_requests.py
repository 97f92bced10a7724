"""What people ask of a lease's holder: restarts and moves, each step of them, and what a crash at each step leaves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kainite.base.checkpoint import Checkpoint
from kainite.base.errors import LeaseLostError
from kainite.leases.keeper import HandingOver, HeldLease, LeaseKeeper, Lost, RestartWanted
from kainite.leases.stance import Stance
from kainite.leases.table.lease import Lease
from kainite.leases.table.lease_table import LeaseTable
from kainite.leases.table.request import LeaseRequest, RequestKind, RequestState
from support.keepers import FIRST, SECOND, Keep, event_of, gain, gain_all, owners, running, until

FAILOVER = 1.5


def restart(id_: str = "r1") -> LeaseRequest:
    return LeaseRequest(id_, RequestKind.RESTART, "ada@host")


def move(to: str, id_: str = "m1") -> LeaseRequest:
    return LeaseRequest(id_, RequestKind.MOVE, "ada@host", to)


def ask(table: LeaseTable, request: LeaseRequest, shard: str = FIRST) -> None:
    assert table.requests.ask(shard, request) is not None


def request_in(table: LeaseTable, shard: str = FIRST) -> LeaseRequest:
    lease = table.get(shard)
    assert lease is not None
    assert lease.request is not None
    return lease.request


def reads(table: LeaseTable, *states: RequestState) -> Callable[[], bool]:
    return lambda: request_in(table).state in states


async def give(keeper: LeaseKeeper, to: str, table: LeaseTable) -> HeldLease:
    """Asks for a move of the first shard to ``to``, and hands it over when the keeper reports it."""
    ask(table, move(to))
    told = await event_of(keeper)
    assert isinstance(told, HandingOver)
    await keeper.hand_over(told.lease)
    return told.lease


async def test_a_restart_is_told_once_and_its_outcome_stands_on_the_item(keep: Keep, table: LeaseTable) -> None:
    async with running(keep(failover=FAILOVER)) as keeper:
        await gain_all(keeper, 2)
        ask(table, restart())
        told = await event_of(keeper)
        assert isinstance(told, RestartWanted)
        assert (told.lease.shard_id, request_in(table).state) == (FIRST, RequestState.WORKING)
        keeper.restarted(told.lease, told.request, "child 2 has begun", done=True)
        await until(reads(table, RequestState.DONE))
        assert request_in(table).said == "child 2 has begun"
        ask(table, restart("r2"))
        again = await event_of(keeper)
        assert isinstance(again, RestartWanted), "nothing else was told of the first one"
        assert again.request.id == "r2"


async def test_a_restart_whose_beginning_was_written_without_an_answer_begins_all_the_same(
    keep: Keep, table: LeaseTable
) -> None:
    async with running(keep(failover=FAILOVER)) as keeper:
        await gain_all(keeper, 2)
        ask(table, restart().now(RequestState.WORKING))
        assert isinstance(await event_of(keeper), RestartWanted)


async def test_who_takes_a_lease_answers_what_it_finds_there_and_carries_nothing_out(
    keep: Keep, table: LeaseTable
) -> None:
    async with running(keep(failover=FAILOVER)) as keeper:
        await gain_all(keeper, 2)
    ask(table, restart())
    async with running(keep(failover=FAILOVER)) as keeper:
        await gain_all(keeper, 2)
        await until(reads(table, RequestState.DONE))
        assert "starts a child of its own" in request_in(table).said
        ask(table, restart("r2"))
        told = await event_of(keeper)
        assert isinstance(told, RestartWanted), "the first request led to no event"
        assert told.request.id == "r2"


async def test_a_shard_that_waits_for_its_parents_has_no_child_to_restart(keep: Keep, table: LeaseTable) -> None:
    table.put_new(Lease("shardId-000000000009", parents=frozenset({FIRST})))
    async with running(keep(failover=FAILOVER)) as keeper:
        await gain_all(keeper, 2)
        await until(lambda: owners(table).get("shardId-000000000009") == "me")
        ask(table, restart(), "shardId-000000000009")
        await until(lambda: request_in(table, "shardId-000000000009").ended)
    assert "waits for its parents" in request_in(table, "shardId-000000000009").said


async def test_a_lease_moves_to_a_worker_that_had_none_and_stays_there(keep: Keep, table: LeaseTable) -> None:
    async with running(keep("old", FAILOVER)) as old:
        held = await gain_all(old, 2)
        await old.checkpoint(held[FIRST], Checkpoint("17"))
        async with running(keep("new", FAILOVER)) as new:
            given = await give(old, "new", table)
            gained = await gain(new)
            assert (gained.shard_id, gained.checkpoint) == (FIRST, Checkpoint("17"))
            assert given not in old.held
            await until(reads(table, RequestState.DONE))
            assert request_in(table).said == "worker new holds the lease, from checkpoint 17"
            await old.release(held[SECOND], pause=60)
            assert (await gain(new)).shard_id == SECOND
            async with running(keep("third", FAILOVER, steal=5)) as third:
                assert (await gain(third)).shard_id == SECOND, "the other one stays where it was moved to"


async def test_a_move_waits_for_the_child_and_a_checkpoint_of_the_old_holder_counts_until_then(
    keep: Keep, table: LeaseTable
) -> None:
    async with running(keep("old", FAILOVER)) as old:
        await gain_all(old, 2)
        async with running(keep("new", FAILOVER)) as new:
            ask(table, move("new"))
            told = await event_of(old)
            assert isinstance(told, HandingOver)
            await old.checkpoint(told.lease, Checkpoint("23"))
            assert request_in(table).state is RequestState.WORKING
            assert owners(table)[FIRST] == "old"
            await old.hand_over(told.lease)
            assert (await gain(new)).checkpoint == Checkpoint("23")


async def test_a_move_to_a_silent_worker_is_refused_by_the_holder_who_goes_on(keep: Keep, table: LeaseTable) -> None:
    async with running(keep("old", 2.0)) as old:
        held = await gain_all(old, 2)
        ask(table, move("nobody"))
        await until(reads(table, RequestState.REFUSED))
        assert "worker nobody does not answer" in request_in(table).said
        assert held[FIRST] in old.held


@pytest.mark.parametrize(
    ("limit", "stance", "why"),
    [
        (0, Stance.SHARE, "maxLeasesForWorker is 0"),
        (None, Stance.ABSTAIN, "it does not reach the log's owner"),
        (None, Stance.ASSIGNED, "the leader of this KCL 3 fleet assigns the leases"),
    ],
)
async def test_a_worker_that_takes_no_lease_refuses_at_once(
    keep: Keep, table: LeaseTable, limit: int | None, stance: Stance, why: str
) -> None:
    async with running(keep("old", FAILOVER)) as old:
        held = await gain_all(old, 2)
        async with running(keep("new", FAILOVER, limit=limit, stance=stance)):
            ask(table, move("new"))
            await until(reads(table, RequestState.REFUSED))
        assert why in request_in(table).said
        assert held[FIRST] in old.held


async def test_a_worker_that_stops_refuses(keep: Keep, table: LeaseTable) -> None:
    async with running(keep("old", FAILOVER)) as old:
        await gain_all(old, 2)
        async with running(keep("new", FAILOVER)) as new:
            new.stop_taking()
            ask(table, move("new"))
            await until(reads(table, RequestState.REFUSED))
        assert "it is stopping" in request_in(table).said


async def _nothing(table: LeaseTable) -> None:
    pass


async def _accepted(table: LeaseTable) -> None:
    assert table.requests.answer(FIRST, move("new"), move("new").now(RequestState.ACCEPTED)) is not None


async def _working(table: LeaseTable) -> None:
    assert table.requests.answer(FIRST, move("new"), move("new").now(RequestState.WORKING)) is not None


@pytest.mark.parametrize("step", [_nothing, _accepted, _working])
@pytest.mark.parametrize(("taker", "state"), [("new", RequestState.DONE), ("other", RequestState.REFUSED)])
async def test_a_holder_that_dies_before_the_hand_off_leaves_the_lease_to_whoever_takes_it(
    keep: Keep, table: LeaseTable, step: Callable[[LeaseTable], Awaitable[None]], taker: str, state: RequestState
) -> None:
    async with running(keep("old", FAILOVER)) as old:
        held = await gain_all(old, 2)
        await old.checkpoint(held[FIRST], Checkpoint("17"))
    ask(table, move("new"))
    await step(table)
    async with running(keep(taker, FAILOVER)) as keeper:
        assert (await gain_all(keeper, 2))[FIRST].checkpoint == Checkpoint("17")
        await until(reads(table, RequestState.DONE, RequestState.REFUSED))
    assert request_in(table).state is state


async def test_a_target_that_dies_after_the_hand_off_loses_the_lease_to_another_worker(
    keep: Keep, table: LeaseTable
) -> None:
    async with running(keep("old", FAILOVER)) as old:
        held = await gain_all(old, 2)
        await old.checkpoint(held[FIRST], Checkpoint("17"))
        ask(table, move("dead"))
        accepted = table.requests.answer(FIRST, move("dead"), move("dead").now(RequestState.ACCEPTED))
        assert accepted is not None
        told = await event_of(old)
        assert isinstance(told, HandingOver)
        await old.hand_over(told.lease)
        assert owners(table)[FIRST] == "dead"
        assert (await gain(old)).checkpoint == Checkpoint("17")
        await until(reads(table, RequestState.REFUSED))
        lease = table.get(FIRST)
        assert lease is not None
        assert lease.moved_to is None, "it does not stay with a worker that has gone"


async def test_a_request_that_goes_while_the_child_ends_leaves_the_lease_to_its_holder(
    keep: Keep, table: LeaseTable
) -> None:
    async with running(keep("old", FAILOVER)) as old:
        await gain_all(old, 2)
        ask(table, move("new").now(RequestState.ACCEPTED))
        told = await event_of(old)
        assert isinstance(told, HandingOver)
        assert table.requests.answer(FIRST, request_in(table), None) is not None
        await old.hand_over(told.lease)
        assert (await gain(old)).shard_id == FIRST, "it takes it again at once"
    assert owners(table)[FIRST] == "old"


async def test_a_lease_that_was_lost_while_the_child_ended_is_not_given_away(keep: Keep, table: LeaseTable) -> None:
    async with running(keep("old", 60)) as old:
        held = await gain_all(old, 2)
        working = held[FIRST].moving = move("new").now(RequestState.WORKING)
        ask(table, working)
        lease = table.get(FIRST)
        assert lease is not None
        assert table.take(lease, "thief") is not None
        await old.hand_over(held[FIRST])
    assert owners(table)[FIRST] == "thief"


async def test_a_lease_that_comes_back_is_taken_at_once_by_the_worker_that_had_lost_it(
    keep: Keep, table: LeaseTable, caplog: pytest.LogCaptureFixture
) -> None:
    """Shows that it is not taken for one that another process of the same name holds, and left until it expires."""
    async with running(keep("b", 60)) as b:
        held = (await gain_all(b, 2))[FIRST]
        stored = table.get(FIRST)
        taken = stored and table.take(stored, "a")
        assert taken is not None
        with pytest.raises(LeaseLostError):
            await b.checkpoint(held, Checkpoint("1"))
        assert isinstance(await event_of(b), Lost)
        ask(table, move("b").now(RequestState.WORKING))
        handed = move("b").now(RequestState.HANDED, counter=taken.counter + 1)
        assert table.requests.move(taken, move("b").now(RequestState.WORKING), handed) is not None
        assert (await gain(b)).shard_id == FIRST
    assert not [record for record in caplog.records if "another daemon runs" in record.getMessage()]


async def test_a_move_to_the_holder_itself_changes_nothing(keep: Keep, table: LeaseTable) -> None:
    async with running(keep("old", FAILOVER)) as old:
        held = await gain_all(old, 2)
        ask(table, move("old"))
        await until(reads(table, RequestState.DONE))
        assert held[FIRST] in old.held


async def test_a_leaders_hand_over_comes_before_a_move(keep: Keep, table: LeaseTable) -> None:
    async with running(keep("old", FAILOVER, handoff_timeout=30)) as old:
        held = await gain_all(old, 2)
        assert table.handoff(held[FIRST].lease, "leaders choice") is not None
        assert isinstance(await event_of(old), HandingOver)
        ask(table, move("new").now(RequestState.ACCEPTED))
        await until(reads(table, RequestState.REFUSED))
        assert "the fleet's leader is moving the lease to leaders choice" in request_in(table).said
        await old.hand_over(held[FIRST])
    assert owners(table)[FIRST] == "leaders choice"


@pytest.mark.parametrize("nonsense", ["", "{", '{"id":1}', '{"id":"x","what":"dance","by":"y"}'])
async def test_what_is_no_request_is_passed_over(keep: Keep, table: LeaseTable, nonsense: str) -> None:
    async with running(keep("old", FAILOVER)) as old:
        held = await gain_all(old, 2)
        table._calls.update(FIRST, "SET kainiteRequest = :x", "attribute_exists(leaseKey)", {":x": {"S": nonsense}})  # noqa: SLF001
        counter = held[FIRST].lease.counter
        await until(lambda: held[FIRST].lease.counter > counter + 1)
        assert held[FIRST] in old.held
        ask(table, restart())
        assert isinstance(await event_of(old), RestartWanted), "nothing was told of what is none"
