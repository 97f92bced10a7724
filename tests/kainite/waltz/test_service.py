"""What applications may rely on, on the level of messages: mounts, locks, feeds, flushes, data, owners that change."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from kainite.log.contract import Slot
from kainite.log.format.entry import Batch, ReqId
from kainite.store.memory import MemoryStore
from kainite.waltz import feed
from kainite.waltz.wire import messages as m
from kainite.waltz.wire.layouts import WaltzMessage
from support.application_world import RawClient, World, raw_client, taken_over, world
from support.waiting import until

READY, NOT_READY, AHEAD = m.MountState


async def filled(found: World, count: int) -> None:
    """Appends transactions 0 to ``count`` − 1."""
    async with raw_client(found, client=99) as raw:
        for number in range(count):
            raw.append(-1, data=str(number).encode())
        assert await raw.flush() == ([], count - 1)


async def fed(raw: RawClient, count: int) -> list[int]:
    found = []
    for _ in range(count):
        message = await raw.next()
        assert isinstance(message, m.FeedData), message
        found.append(message.transaction_id)
    return found


async def test_a_mount_feeds_exactly_what_the_client_lacks_and_then_answers() -> None:
    async with world() as found:
        await filled(found, 50)
        for mark in (-1, 0, 20, 49):
            async with raw_client(found, client=mark + 10, mark=None) as raw:
                assert await raw.mount(mark) == (list(range(mark + 1, 50)), READY)
        async with raw_client(found, mark=None) as raw:
            assert await raw.mount(50) == ([], AHEAD)


async def test_a_client_that_is_ahead_is_not_ready_for_versions_that_know_no_more() -> None:
    async with world() as found, raw_client(found, version=2, mark=None) as raw:
        assert await raw.mount(0) == ([], NOT_READY)


async def test_nothing_is_fed_behind_a_mount_before_it_is_asked_for() -> None:
    async with world() as found, raw_client(found) as raw:
        await filled(found, 3)
        assert await raw.flush() == ([], 2)  # would come behind what is fed
        raw.send(m.FeedRequest(raw.next_id(), -1))
        assert await fed(raw, 3) == [0, 1, 2]


async def test_a_feed_stops_at_its_credit_and_goes_on_with_the_next() -> None:
    async with world() as found, raw_client(found) as raw:
        first = raw.next_id()
        raw.send(m.FeedRequest(first, -1))
        await filled(found, 250)
        assert await fed(raw, feed.PORTION) == list(range(100))
        assert await raw.next() == m.FeedSuspended(first)
        assert await raw.flush() == ([], 249)
        second = raw.next_id()
        raw.send(m.FeedRequest(second, 99))
        assert await fed(raw, 150) == list(range(100, 250))  # all that it lacks, since that is more than a portion
        assert await raw.next() == m.FeedSuspended(second)


async def test_a_client_that_takes_nothing_is_fed_all_in_order_when_it_takes_again() -> None:
    async with world() as found, raw_client(found, client=1) as slow:
        slow.send(m.FeedRequest(slow.next_id(), -1))
        await filled(found, 2_000)
        assert await fed(slow, 100) == list(range(100))
        assert isinstance(await slow.next(), m.FeedSuspended)
        slow.send(m.FeedRequest(slow.next_id(), 99))
        assert await fed(slow, 1_900) == list(range(100, 2_000))


async def test_what_is_fed_names_the_append_and_its_header() -> None:
    async with world() as found, raw_client(found) as raw:
        req_id = raw.append(-1, header=-7)
        raw.send(m.FeedRequest(raw.next_id(), -1))
        assert await raw.next() == m.FeedData(req_id, 0, -7)


LOCKS: list[tuple[str, list[tuple[Sequence[int], Sequence[int], Sequence[int]]], list[int | None]]] = [
    ("write, write", [([1], [], []), ([1], [], []), ([2], [], [])], [None, 0, None]),
    ("read, read", [([], [1], []), ([], [1], [])], [None, None]),
    ("write, read", [([1], [], []), ([], [1], [])], [None, 0]),
    ("read, write", [([], [1], []), ([1], [], [])], [None, None]),
    ("sets", [([1, 2], [], []), ([1, 2], [], []), ([2, 3], [], []), ([4, 5], [], [])], [None, 0, 0, None]),
    ("append never fails", [([], [], [1]), ([], [], [1]), ([1], [], []), ([], [1], [])], [None, None, 1, 1]),
    (
        "parent and children",
        [([1, 2], [], []), ([], [], []), ([], [3], [2]), ([], [3], [2]), ([1, 2], [], [])],
        [None, None, None, None, 3],
    ),
    (
        "the largest hashes",
        [([-(2**31), 2**31 - 1], [], []), ([], [-(2**31)], []), ([2**31 - 1], [], [])],
        [None, 0, 0],
    ),
]


@pytest.mark.parametrize(("appends", "in_the_way"), [case[1:] for case in LOCKS], ids=[case[0] for case in LOCKS])
async def test_locks(
    appends: list[tuple[Sequence[int], Sequence[int], Sequence[int]]], in_the_way: list[int | None]
) -> None:
    async with world() as found, raw_client(found) as raw:
        req_ids = [raw.append(-1, *locks) for locks in appends]
        failures, mark = await raw.flush()
        assert {failure.req_id: failure.transaction_id for failure in failures} == {
            req_id: tid for req_id, tid in zip(req_ids, in_the_way, strict=True) if tid is not None
        }
        assert mark == in_the_way.count(None) - 1


async def test_a_lock_does_not_fail_for_what_the_client_has_applied() -> None:
    async with world() as found, raw_client(found) as raw:
        raw.append(-1, write=[1])
        raw.append(0, write=[1])
        raw.append(0, write=[1])
        (failure,), mark = await raw.flush()
        assert (failure.transaction_id, mark) == (1, 1)


async def test_locks_are_known_to_the_next_owner() -> None:
    async with world() as found:
        async with raw_client(found) as raw:
            raw.append(-1, write=[1])
            raw.append(-1, append=[-5])
            assert await raw.flush() == ([], 1)
        await found.own()
        async with raw_client(found, mark=1) as raw:
            stale = [raw.append(-1, write=[1]), raw.append(0, read=[-5])]
            raw.append(-1, write=[7])
            raw.append(1, write=[1])
            failures, mark = await raw.flush()
            assert [(failure.req_id, failure.transaction_id) for failure in failures] == [(stale[0], 0), (stale[1], 1)]
            assert mark == 3


async def test_data_is_given_for_what_is_durable_and_an_error_for_the_rest() -> None:
    async with world() as found:
        await filled(found, 3)
        await found.own()  # so that it is read from the store
        async with raw_client(found, mark=None) as raw:
            for tid, data in ((0, b"0"), (2, b"2")):
                req_id = raw.next_id()
                raw.send(m.TransactionDataRequest(req_id, tid))
                assert await raw.next() == m.TransactionDataResponse(req_id, tid, data)
            for tid in (-1, 3):
                raw.send(m.TransactionDataRequest(raw.next_id(), tid))
                answer = await raw.next()
                assert isinstance(answer, m.TransactionDataResponse)
                assert answer.data is None
                assert "has no transaction" in (answer.error or "")
            raw.send(m.TransactionDataRequest(raw.next_id(partition=5), 0))
            answer = await raw.next()
            assert isinstance(answer, m.TransactionDataResponse)
            assert "owner elsewhere" in (answer.error or "")


async def test_the_owner_tells_its_mark_and_what_it_owns() -> None:
    async with world() as found, raw_client(found, mark=None) as raw:
        await filled(found, 3)
        req = raw.next_id()
        asked: list[tuple[WaltzMessage, WaltzMessage]] = [
            (m.HighWaterMarkRequest(req), m.HighWaterMarkResponse(req, 2)),
            (m.ServerPartitionsAssignmentRequest(req), m.ServerPartitionsAssignmentResponse(req, (0,))),
            (m.ServerPartitionsHealthStatRequest(req), m.ServerPartitionsHealthStatResponse(req, ((0, True),))),
            (m.AddPreferredPartitionRequest(req, (1,)), m.AddPreferredPartitionResponse(req, False)),
            (m.RemovePreferredPartitionRequest(req, (1,)), m.RemovePreferredPartitionResponse(req, False)),
            (m.CheckStorageConnectivityRequest(req), m.CheckStorageConnectivityResponse(req, (("DynamoDB", True),))),
        ]
        for question, answer in asked:
            raw.send(question)
            assert await raw.next() == answer


@pytest.mark.parametrize("version", range(5))
async def test_every_version_appends_and_is_fed(version: int) -> None:
    async with world() as found, raw_client(found, version=version) as raw:
        req_id = raw.append(-1, write=[1])
        raw.send(m.FeedRequest(raw.next_id(), -1))
        assert await raw.next() == m.FeedData(req_id, 0, 0)


def misused(raw: RawClient) -> list[WaltzMessage]:
    old = ReqId(1, raw.generation - 1, 0, 1)
    return [
        m.AppendRequest(old, -1, (), (), (), 0, b""),
        m.FeedRequest(old, -1),
        m.FlushRequest(raw.next_id(partition=3)),
        m.HighWaterMarkRequest(raw.next_id(partition=3)),
        m.AppendRequest(ReqId(2, raw.generation, 0, 1), -1, (), (), (), 0, b""),  # a client that has not mounted
        m.AppendRequest(raw.next_id(), 5, (), (), (), 0, b""),  # has applied what is not there
        m.LockFailure(raw.next_id(), 1),  # an owner's word
    ]


@pytest.mark.parametrize("index", range(7))
async def test_what_cannot_be_answered_ends_the_connection_and_appends_nothing(index: int) -> None:
    async with world() as found:
        async with raw_client(found) as raw:
            raw.send(misused(raw)[index])
            assert await raw.is_cut()
        assert await found.stored() == []


async def test_a_mount_that_means_another_generation_is_not_ready() -> None:
    async with world() as found, raw_client(found, mark=None) as raw:
        raw.generation += 1
        assert await raw.mount(-1) == ([], NOT_READY)
        assert await raw.mount(-1, partition=4) == ([], NOT_READY)


async def test_of_two_connections_of_a_client_the_newer_one_stays() -> None:
    async with world() as found, raw_client(found, connection=1) as old:
        async with raw_client(found, connection=2) as new:
            assert await old.is_cut()
            new.append(-1)
            assert await new.flush() == ([], 0)
        async with raw_client(found, mark=None) as late:
            assert await late.mount(-1, connection=1) == ([], NOT_READY)
        async with raw_client(found, mark=0, connection=3) as newest:
            assert await newest.flush() == ([], 0)


async def test_two_clients_do_not_disturb_each_other() -> None:
    async with world() as found, raw_client(found, client=1) as one, raw_client(found, client=2) as other:
        for raw in (one, other):
            raw.append(-1)
            raw.send(m.FeedRequest(raw.next_id(), -1))
        for raw in (one, other):
            assert await fed(raw, 2) == [0, 1]


class Gate(MemoryStore):
    """A store whose puts wait until they are let through."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()
        self.open.set()
        self.waiting = 0

    def put_batch(self, partition: str, batch: Batch, nonce: str) -> Slot | None:
        self.waiting += 1
        assert self.open.wait(60)
        self.waiting -= 1
        return super().put_batch(partition, batch, nonce)


async def test_nothing_is_told_before_it_is_durable() -> None:
    gate = Gate()
    async with world(gate) as found, raw_client(found) as raw, raw_client(found, client=2) as other:
        gate.open.clear()
        appended = raw.append(-1, write=[1])
        refused = other.append(-1, write=[1])
        raw.send(m.FeedRequest(raw.next_id(), -1))
        other.send(m.HighWaterMarkRequest(other.next_id()))
        await until(lambda: gate.waiting)
        mark = await other.next()
        assert isinstance(mark, m.HighWaterMarkResponse)
        assert mark.transaction_id == -1
        gate.open.set()
        assert await raw.next() == m.FeedData(appended, 0, 0)
        assert await other.next() == m.LockFailure(refused, 0)


async def test_a_mount_is_answered_when_nothing_of_the_client_is_under_way() -> None:
    gate = Gate()
    async with world(gate) as found, raw_client(found, connection=0) as raw:
        gate.open.clear()
        raw.append(-1)
        await until(lambda: gate.waiting)
        async with raw_client(found, mark=None) as again:
            mounting = asyncio.create_task(again.mount(-1, connection=1))
            assert await raw.is_cut()
            gate.open.set()
            assert await mounting == ([0], READY)


async def test_an_owner_that_was_overtaken_appends_nothing_and_its_clients_are_cut() -> None:
    async with world() as found, raw_client(found) as raw:
        for _ in range(10):
            raw.append(-1)
        assert (await raw.flush())[1] == 9
        taken = taken_over(found.store)
        assert taken.first_id == 10
        raw.append(-1)
        assert await asyncio.wait_for(found.owned.failed(), 30)
        assert len(await found.stored()) == 10


async def test_the_next_owner_goes_on_behind_the_last_transaction() -> None:
    async with world() as found:
        for owner in range(3):
            await filled(found, 10) if not owner else None
            async with raw_client(found, mark=found.owned.mark) as raw:
                raw.append(-1)
                assert await raw.flush() == ([], 10 + owner)
            await found.own()
            assert found.owned.mark == 10 + owner
