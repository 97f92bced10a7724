"""What came by the feed: it is folded without a gap, and a gap is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.log.format.entry import Batch, Entry, EntryKind, UnitMeta
from kainite.peers.feed.buffer import EVERYTHING, FedBatch, FeedBuffer


def fed(first: int, last: int) -> FedBatch:
    entries = tuple(Entry(EntryKind.UNIT, UnitMeta(f"T-{tid}", 0)) for tid in range(first, last + 1))
    return FedBatch(Batch(first, 1, 0, entries), False, 10)


def firsts(buffer: FeedBuffer, next_id: int) -> tuple[list[int], int | None]:
    step = buffer.take(next_id)
    return [one.batch.first_id for one in step.batches], step.missing


def test_nothing_is_known_before_the_owner_has_said_a_word_and_after_the_end() -> None:
    buffer = FeedBuffer()
    assert firsts(buffer, 0) == ([], EVERYTHING)
    buffer.said_up_to(3)
    buffer.add(fed(3, 4))
    buffer.close()
    assert firsts(buffer, 3) == ([], EVERYTHING)
    assert buffer.freed == 0, "credit is a connection's"


def test_what_was_durable_before_the_feed_began_is_read_and_then_the_rest_comes() -> None:
    buffer = FeedBuffer()
    buffer.said_up_to(5)
    assert firsts(buffer, 2) == ([], 5)
    assert firsts(buffer, 5) == ([], None)
    buffer.add(fed(5, 6))
    assert firsts(buffer, 5) == ([5], None)


def test_a_gap_before_a_batch_is_read() -> None:
    buffer = FeedBuffer()
    buffer.said_up_to(0)
    buffer.add(fed(0, 1))
    buffer.add(fed(4, 5))
    assert firsts(buffer, 0) == ([0], 4)
    assert firsts(buffer, 4) == ([4], None)


def test_what_the_reader_has_is_dropped_and_its_bytes_are_free() -> None:
    buffer = FeedBuffer()
    buffer.said_up_to(0)
    buffer.add(fed(0, 1))
    buffer.add(fed(2, 5))
    assert firsts(buffer, 4) == ([2], None), "a batch may begin before what is missing"
    assert buffer.freed == 20


@given(st.data())
def test_whatever_is_left_out_cut_or_repeated_the_reader_has_each_entry_once_and_in_order(data: st.DataObject) -> None:
    """Tries a reader with a store beside it on a feed that loses batches, sends some twice, and is cut."""
    buffer = FeedBuffer()
    durable, reader = 0, 0
    folded: list[int] = []
    for _ in range(data.draw(st.integers(1, 30))):
        match data.draw(st.sampled_from(("append", "lost", "again", "say", "cut", "take"))):
            case "append":
                count = data.draw(st.integers(1, 3))
                buffer.add(fed(durable, durable + count - 1))
                durable += count
            case "lost":
                durable += data.draw(st.integers(1, 3))
            case "again" if durable:
                begin = data.draw(st.integers(0, durable - 1))
                buffer.add(fed(begin, durable - 1))
            case "say":
                buffer.said_up_to(durable)
            case "cut":
                buffer.close()
            case "take":
                step = buffer.take(reader)
                for one in step.batches:
                    assert one.batch.first_id <= reader <= one.batch.last_id
                    folded += [tid for tid, _ in one.batch.entries_from(reader)]
                    reader = one.batch.last_id + 1
                if step.missing is not None:
                    assert step.missing == EVERYTHING or reader < step.missing <= durable
                    folded += range(reader, durable)
                    reader = durable
    assert folded == list(range(reader))
