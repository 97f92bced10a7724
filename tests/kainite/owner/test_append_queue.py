"""The queue: what is not durable is granted to nobody, and who gives up waiting leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import LogUnavailableError
from kainite.base.position import Position
from kainite.log.format.entry import Entry, EntryKind, PositionMeta, StatusMeta
from kainite.owner.append_queue import ENTRY_OVERHEAD, AppendQueue, size_of
from kainite.uow.touches import Touched

LIMIT = 1 << 20


def moved(shard: str, sequence: int) -> Entry:
    return Entry(EntryKind.POSITION, PositionMeta.of(shard, Position(sequence)))


def queue(limit: int = LIMIT) -> AppendQueue:
    return AppendQueue({"s0": Position(0)}, limit)


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_position_is_told_when_the_shards_last_queued_append_is_durable() -> None:
    appends = queue()
    for sequence in (1, 2):
        appends.add([moved("s0", sequence)])
    appends.add([moved("s1", 7)])
    told = asyncio.create_task(appends.position("s0"))
    for _ in range(2):
        await turns()
        assert not told.done()
        appends.became_durable(appends.pack(1))
    assert await told == Position(2)
    other = asyncio.create_task(appends.position("s1"))
    await turns()
    assert not other.done(), "another shard's append is not durable yet"
    appends.became_durable(appends.pack(1))
    assert await other == Position(7)


async def test_a_flush_waits_for_what_is_queued_now_and_for_nothing_later() -> None:
    appends = queue()
    await appends.flush()
    appends.add([moved("s0", 1)])
    flushed = asyncio.create_task(appends.flush())
    await turns()
    appends.add([moved("s0", 2)])
    assert not flushed.done()
    appends.became_durable(appends.pack(1))
    await flushed
    assert len(appends) == 1


async def test_those_who_gave_up_waiting_for_a_store_that_hangs_leave_nothing_behind() -> None:
    appends = queue()
    pending = appends.add([moved("s0", 1)])
    for _ in range(3):  # an outage may last for days
        position = asyncio.create_task(appends.position("s0"))
        await turns()
        position.cancel()
        await asyncio.gather(position, return_exceptions=True)
    assert pending.waiting == []


async def test_whoever_waits_when_the_owner_fails_or_asks_later_is_told_why() -> None:
    appends = queue(limit=1)
    pending = appends.add([moved("s0", 1)])
    waits = [
        asyncio.create_task(wait)
        for wait in (pending.durable(), appends.position("s0"), appends.flush(), appends.room(lambda: True))
    ]
    await turns()
    error = LogUnavailableError("the owner has stopped")
    appends.fail(error)
    assert await asyncio.gather(*waits, return_exceptions=True) == [error] * 4
    for late in (pending.durable(), appends.position("s0"), appends.flush(), appends.room()):
        with pytest.raises(LogUnavailableError, match="has stopped"):
            await late


async def test_room_waits_for_both_the_queue_and_the_other_condition() -> None:
    appends, also = queue(limit=2 * ENTRY_OVERHEAD), [False]
    await appends.room()
    for sequence in (1, 2):
        appends.add([moved("s0", sequence)])
    waiting = asyncio.create_task(appends.room(lambda: also[0]))
    await turns()
    appends.became_durable(appends.pack(1))
    await turns()
    assert not waiting.done()
    also[0] = True
    appends.became_durable(appends.pack(1))
    await waiting


async def test_the_writer_is_woken_by_an_append() -> None:
    appends = queue()
    filled = asyncio.create_task(appends.filled())
    await turns()
    assert not filled.done()
    appends.add([moved("s0", 1)])
    await filled


SIZES = st.lists(st.integers(0, 3), min_size=1, max_size=12)


@given(SIZES, st.integers(1, 4 * ENTRY_OVERHEAD))
def test_batches_have_all_appends_in_order_and_keep_to_their_bound(sizes: Sequence[int], most: int) -> None:
    appends, packed = queue(), []
    for number, size in enumerate(sizes):
        appends.add([Entry(EntryKind.STATUS, StatusMeta()), *[moved("s0", number)] * size])
    assert appends.bytes == sum((size + 1) * ENTRY_OVERHEAD for size in sizes)
    while len(appends):
        batch = appends.pack(most)
        assert len(batch) == 1 or sum(pending.size for pending in batch) <= most
        appends.became_durable(batch)
        packed += [len(pending.entries) - 1 for pending in batch]
    assert packed == list(sizes)
    assert appends.bytes == 0


def test_the_size_counts_data_and_signatures() -> None:
    entry = Entry(EntryKind.UNIT, StatusMeta(), Touched(frozenset({1, 2}), frozenset({3})), b"x" * 100)
    assert size_of([entry]) == ENTRY_OVERHEAD + 100 + 3 * 8
