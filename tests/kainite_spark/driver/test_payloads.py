"""Deltas that came with the feed: tasks are given them or read them, and the parts are the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.log.format.entry import Batch, Entry, EntryKind, FragmentMeta, StatusMeta, UnitMeta
from kainite.owner.mount import mount
from kainite.store.memory import MemoryStore
from kainite.uow.touches import Touched
from kainite_spark.driver.payloads import KEPT, OVERHEAD, Payloads
from kainite_spark.executor.tasks import read_slice
from kainite_spark.plan.micro_batch import MicroBatch, Slice, Wanted
from kainite_spark.targets.fence import Fence

FENCE = Fence("log/0", 1, 1)


def entries(*sizes: int) -> tuple[Entry, ...]:
    """Returns a unit's fragments, and its last entry."""
    last = len(sizes) - 1
    return tuple(
        Entry(EntryKind.FRAGMENT, FragmentMeta("T", "s", 1), data=bytes([n]) * size)
        if n < last
        else Entry(EntryKind.UNIT, UnitMeta("T", len(sizes)), Touched(frozenset({n})), data=bytes([n]) * size)
        for n, size in enumerate(sizes)
    )


def micro_batch(*pieces: list[int]) -> MicroBatch:
    slices = tuple(
        Slice(((piece[0], piece[-1]),), tuple(Wanted(tid, piece[-1], n, number) for n, tid in enumerate(piece)))
        for number, piece in enumerate(pieces)
    )
    return MicroBatch(FENCE, slices, len(pieces), False)


def test_what_is_given_is_what_would_be_read() -> None:
    store = MemoryStore()
    mount(store, "0", "w", 60.0)
    batch = Batch(0, 1, 0, entries(3, 5, 7))
    assert store.put_batch("0", batch, "n") is None
    payloads = Payloads(10_000)
    payloads.keep(batch)
    (piece,) = payloads.given(micro_batch([0, 1, 2])).slices
    assert len(piece.given) == 3
    unread = Slice(piece.ranges, piece.wanted)
    assert list(read_slice(MemoryStore(), "0", piece)) == list(read_slice(store, "0", unread))


def test_a_slice_is_given_whole_or_is_read() -> None:
    payloads = Payloads(10_000)
    payloads.keep(Batch(5, 1, 0, entries(3)))
    first, second = payloads.given(micro_batch([5], [4, 5])).slices
    assert first.given
    assert not second.given


def test_there_is_a_bound_for_a_micro_batch_and_one_for_all() -> None:
    size = OVERHEAD + 8 + 100
    payloads = Payloads(size)
    for tid in range(KEPT + 1):
        payloads.keep(Batch(tid, 1, 0, entries(100)))
    oldest, one, two = payloads.given(micro_batch([0], [1], [2])).slices
    assert (bool(oldest.given), bool(one.given), bool(two.given)) == (False, True, False)


def test_nothing_is_kept_without_room_and_nothing_that_tasks_do_not_want() -> None:
    payloads = Payloads(0)
    payloads.keep(Batch(0, 1, 0, entries(3)))
    assert not payloads.given(micro_batch([0])).slices[0].given
    status = Payloads(10_000)
    status.keep(Batch(0, 1, 0, (Entry(EntryKind.STATUS, StatusMeta()),)))
    assert not status.given(micro_batch([0])).slices[0].given


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 400)), max_size=40), st.integers(0, 600))
def test_whatever_comes_the_bytes_that_are_kept_stay_in_bounds(came: list[tuple[int, int]], most: int) -> None:
    payloads = Payloads(most)
    for tid, size in came:
        payloads.keep(Batch(tid, 1, 0, entries(size)))
        kept = payloads._entries.values()  # noqa: SLF001
        assert sum(len(entry.data) + 8 + OVERHEAD for entry in kept) == payloads._bytes <= KEPT * most  # noqa: SLF001
