"""Following the log by its owner's feed over real sockets: what comes, what is read, what a bad network changes."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from dataclasses import replace
from typing import Any

import pytest

from kainite.base.retry import Backoff
from kainite.log.format.entry import Entry, EntryKind, Outcome, StatusMeta, UnitStatus
from kainite.log.state.outcomes import outcomes_partition
from kainite.owner import looking
from kainite.owner.append import PartitionWriter, take_steps_async
from kainite.owner.mount import mount
from kainite.peers.feed import following as following_module
from kainite.store.memory import MemoryStore
from support.followed_log import append, behind_a_proxy, following
from support.log_members import LIMIT, P, members
from support.waiting import until


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following_module, "HEAD_EVERY_S", 0.05)
    monkeypatch.setattr(following_module, "BACKOFF", Backoff((0.01,)))


async def test_what_becomes_durable_comes_without_a_read() -> None:
    async with members() as all_:
        log = await all_.join("a")
        await append(log, 1)
        async with following(all_.store) as reader:
            await reader.fed()
            before = reader.store.reads
            for number in range(2, 12):
                await append(log, number)
            await reader.has(log)
            assert reader.store.reads == before
            assert reader.is_the_fold()
            assert len(reader.units()) == 11
            await until(lambda: log.feed_lags() == (("follower", 0),))


async def test_a_thread_that_waits_is_woken_by_what_comes() -> None:
    async with members() as all_:
        log = await all_.join("a")
        async with following(all_.store) as reader:
            await reader.fed()
            stop = asyncio.Event()
            waiting = asyncio.create_task(asyncio.to_thread(reader.feed.wait, stop, LIMIT))
            await append(log, 1)
            await asyncio.wait_for(waiting, LIMIT / 2)
            await reader.has(log)


async def test_small_deltas_come_along_and_large_ones_do_not() -> None:
    async with members() as all_:
        log = await all_.join("a")
        async with following(all_.store, payload=2_000) as reader:
            await reader.fed()
            await append(log, 1)
            await append(log, 2, size=1_000)
            await reader.has(log)
            small, large = reader.units()
            kept = reader.payloads._entries  # noqa: SLF001
            assert kept.keys() == {small}
            stored = next(reader.store.read_batches(P, small, small))
            assert kept[small] == stored.entries[small - stored.first_id]
            assert large == reader.follower.next_id - 2


async def test_what_a_queue_has_dropped_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from kainite.peers.feed import queue

    monkeypatch.setattr(queue, "MAX_QUEUED", 1_000)
    async with members() as all_:
        log = await all_.join("a")
        async with following(all_.store, credit=1) as reader:
            await reader.fed()
            before = reader.store.reads
            await asyncio.gather(*(append(log, 1, f"s{number}") for number in range(20)))
            for number in range(2, 20):
                await append(log, number)
            await reader.has(log)
            assert reader.store.reads > before
            assert reader.is_the_fold()


async def test_nothing_is_sent_that_is_not_durable() -> None:
    class Held(MemoryStore):
        """A store whose next put is held up."""

        def __init__(self) -> None:
            super().__init__()
            self.free = threading.Event()
            self.free.set()

        def put_batch(self, *args: Any) -> Any:
            self.free.wait(LIMIT)
            return super().put_batch(*args)

    store = Held()
    async with members(store) as all_:
        log = await all_.join("a")
        async with following(store) as reader:
            await append(log, 1)
            await reader.fed()
            await reader.has(log)
            durable = reader.follower.next_id
            store.free.clear()
            appending = asyncio.create_task(append(log, 2))
            owner = log.owner
            assert owner is not None
            await until(lambda: owner.state.next_id > durable)
            await until(lambda: reader.feed.is_following)
            assert reader.feed.take(durable).missing is None, "nothing came, and nothing was said"
            store.free.set()
            await appending
            await reader.has(log)


async def test_another_log_is_not_followed(caplog: pytest.LogCaptureFixture) -> None:
    async with members() as all_:
        await all_.join("a")
        async with following(all_.store) as reader:
            reader.feed._wishes = replace(reader.feed._wishes, log="another/0")  # noqa: SLF001
            with caplog.at_level("INFO"):
                await until(lambda: any("is here, not another/0" in str(vars(record)) for record in caplog.records))
            assert not reader.feed.is_following


async def test_the_next_owner_is_followed_when_one_is_killed() -> None:
    async with members(lease=0.5) as all_:
        a = await all_.join("a")
        b = await all_.join("b")
        async with following(all_.store) as reader:
            await append(a, 1)
            await reader.fed()
            await all_.kill("a")
            await append(b, 2)
            await until(lambda: b.owner is not None)
            await until(lambda: bool(b.feed_lags()))
            await reader.fed()
            before = reader.store.reads
            await append(b, 3)
            await reader.has(b)
            assert reader.store.reads == before
            assert reader.is_the_fold()


async def test_an_owner_that_was_overtaken_and_goes_on_talking_is_left() -> None:
    async with members() as all_:
        a = await all_.join("a")
        async with following(all_.store) as reader:
            await append(a, 1)
            await reader.fed()
            head = all_.store.read_head(P)
            assert head is not None
            # Somebody else has mounted, whom this process does not reach; the owner has not noticed.
            all_.store.swap_head(P, replace(head, generation=head.generation + 1, version="x", address=""), head)
            await until(lambda: not reader.feed.is_following)


async def test_entries_that_the_store_does_not_have_are_doubted() -> None:
    async with members() as all_:
        a = await all_.join("a")
        async with following(all_.store) as reader:
            await append(a, 1)
            await reader.fed()
            reader.feed._buffer.said_up_to(1_000)  # noqa: SLF001
            assert reader.follower.poll(strong=True)
            assert not reader.feed.is_following
            await reader.fed()
            assert reader.is_the_fold()


async def test_outcomes_are_copied_when_they_are_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "OUTCOMES_S", 1_000.0)
    async with members() as all_:
        log = await all_.join("a")
        owner = log.owner
        assert owner is not None
        async with following(all_.store) as reader:
            await append(log, 1)
            await reader.fed()
            await until(lambda: not owner.looking.outcomes_due(owner.state.through), limit=LIMIT)
            await reader.has(log)
            (tid,) = reader.units()
            outcomes = outcomes_partition(P)
            mounted = mount(all_.store, outcomes, "a job", 60.0)
            writer = PartitionWriter(all_.store, mounted, mounted.first_id, "outcomes", logging.getLogger())
            meta = StatusMeta((Outcome(tid, UnitStatus.COMMITTED),))
            await take_steps_async(writer.append_steps([Entry(EntryKind.STATUS, meta)]))
            reader.feed.outcomes_at(writer.next_id - 1)
            await until(lambda: reader.follower.poll() and reader.follower.through == 0)


@pytest.mark.parametrize("seed", range(3))
async def test_over_a_network_that_delays_cuts_and_throttles_the_fold_is_that_of_the_log(seed: int) -> None:
    chance = random.Random(seed)
    async with members() as all_, behind_a_proxy(all_, "a") as (log, proxy):
        proxy.delay, proxy.chunk = 0.005, 100
        async with following(all_.store, credit=2_000, payload=200) as reader:
            for number in range(1, 80):
                await append(log, number, size=chance.choice((1, 1, 20)))
                if chance.random() < 0.1:
                    proxy.cut()
                if chance.random() < 0.5:
                    assert reader.follower.poll()
                if chance.random() < 0.2:
                    await asyncio.sleep(chance.uniform(0.0, 0.03))
            await reader.has(log)
            assert reader.is_the_fold()
            assert len(reader.units()) == 79
