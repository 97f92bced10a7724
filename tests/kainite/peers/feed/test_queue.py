"""What one follower is still to be sent: order, credit, and what is left to be read."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from kainite.log.format.batch_codec import encode
from kainite.log.format.entry import Batch, Entry, EntryKind, UnitMeta
from kainite.peers.connection.frames import MAX_BODY
from kainite.peers.feed import queue as queue_module
from kainite.peers.feed.queue import FeedQueue
from kainite.peers.messages import PEERS, FeedBatch
from kainite.uow.touches import Touched


def batch(first: int, count: int = 1, data: bytes = b"", written: int = 0) -> Batch:
    entries = (Entry(EntryKind.UNIT, UnitMeta("T", 0), Touched(frozenset(range(written))), data=data),) * count
    return Batch(first, 1, 0, entries)


def test_batches_leave_in_order_while_there_is_credit() -> None:
    queue = FeedQueue(durable=5, taken=5, credit=10, payload=0)
    queue.add(batch(5, 2))
    queue.add(batch(7))
    assert queue.up_to == 5
    first = queue.next()
    assert first is not None
    assert first.first_id == 5
    queue.sent(10)
    assert queue.next() is None, "the credit is used"
    assert (queue.up_to, queue.lag) == (7, 3)
    queue.taken(7, 10)
    last = queue.next()
    assert last is not None
    assert last.first_id == 7
    assert (queue.up_to, queue.lag) == (8, 1)


def test_a_follower_that_begins_behind_the_tail_reads_up_to_it() -> None:
    assert FeedQueue(durable=5, taken=2, credit=10, payload=0).up_to == 5


def test_a_queue_that_is_full_drops_what_waits_and_says_so() -> None:
    queue = FeedQueue(durable=0, taken=0, credit=1, payload=1 << 20)
    most = queue_module.MAX_QUEUED // (1 << 20)
    for number in range(most + 1):
        queue.add(batch(number, data=b"x" * (1 << 20)))
    assert queue.up_to > 0, "the first ones are to be read"
    found = queue.next()
    assert found is not None
    assert found.first_id == queue.up_to - 1


def test_deltas_that_stay_behind_take_memory_while_they_wait() -> None:
    queue = FeedQueue(durable=0, taken=0, credit=0, payload=0)
    for number in range(2 * (queue_module.MAX_QUEUED >> 20)):
        queue.add(batch(number, data=b"x" * (1 << 20)))
    waiting = sum(len(entry.data) for batch, _ in queue._queue for entry in batch.entries)  # noqa: SLF001
    assert waiting <= queue_module.MAX_QUEUED


def test_a_batch_with_too_large_an_index_is_left_to_be_read() -> None:
    queue = FeedQueue(durable=0, taken=0, credit=1 << 30, payload=0)
    queue.add(batch(0, written=queue_module.MAX_INDEX // 8))
    assert queue.next() is None
    assert queue.up_to == 1


def test_large_payloads_stay_behind() -> None:
    queue = FeedQueue(durable=0, taken=0, credit=1, payload=10)
    assert queue.has_payload(batch(0, data=b"x" * 10))
    assert not queue.has_payload(batch(0, data=b"x" * 11))


def test_no_message_is_longer_than_a_follower_takes() -> None:
    data = random.Random(0).randbytes(MAX_BODY)
    queue = FeedQueue(durable=0, taken=0, credit=1, payload=1 << 26)
    for size in (MAX_BODY // 2, MAX_BODY):
        sent = batch(0, data=data[:size])
        index, payload = encode(sent)
        message = FeedBatch(1, 0, index, payload if queue.has_payload(sent) else None)
        assert len(PEERS.encode(1, message)) <= MAX_BODY


@given(st.lists(st.one_of(st.integers(1, 3), st.just("give"), st.just("next")), max_size=60))
def test_everything_below_up_to_was_handed_out_or_dropped_and_nothing_leaves_twice(events: list[int | str]) -> None:
    queue = FeedQueue(durable=0, taken=0, credit=1, payload=0)
    durable, handed = 0, -1
    for event in events:
        if isinstance(event, int):
            queue.add(batch(durable, event))
            durable += event
        elif event == "give":
            queue.taken(handed + 1, 1)
        elif (found := queue.next()) is not None:
            assert found.first_id > handed
            handed = found.last_id
            queue.sent(1)
        assert handed < queue.up_to <= durable
