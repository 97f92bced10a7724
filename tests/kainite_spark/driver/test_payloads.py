"""Batches that came with the feed: tasks are given them or read the log, and the parts are the same."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from kainite.log.format.batch_codec import decode, encode
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


def fed(first_id: int, *sizes: int) -> Batch:
    """Returns a batch with one unit, as the feed brings it."""
    return decode(*encode(Batch(first_id, 1, 0, entries(*sizes))))


def micro_batch(*pieces: list[int]) -> MicroBatch:
    slices = tuple(
        Slice(((piece[0], piece[-1]),), tuple(Wanted(tid, piece[-1], n, number) for n, tid in enumerate(piece)))
        for number, piece in enumerate(pieces)
    )
    return MicroBatch(FENCE, slices, len(pieces), False)


def filled(*batches: Batch) -> MemoryStore:
    store = MemoryStore()
    mount(store, "0", "w", 60.0)
    for batch in batches:
        assert store.put_batch("0", batch, "n") is None
    return store


def test_what_is_given_is_what_would_be_read_also_after_its_way_to_the_task() -> None:
    one, two = fed(0, 3, 5, 7), fed(3, 2, 9)
    payloads = Payloads(10_000)
    payloads.keep(one)
    payloads.keep(two)
    (piece,) = payloads.given(micro_batch([0, 1, 2, 3, 4])).slices
    travelled = pickle.loads(pickle.dumps(piece))
    assert travelled == piece
    found = list(read_slice(MemoryStore(), "0", travelled))
    assert found == list(read_slice(filled(one, two), "0", Slice(piece.ranges, piece.wanted)))
    assert len(found) == 5


def test_a_slice_is_given_whole_or_is_read() -> None:
    payloads = Payloads(10_000)
    payloads.keep(fed(5, 3))
    payloads.keep(fed(9, 3))
    given, *others = payloads.given(micro_batch([5, 9], [4, 5], [5, 6], [5, 10])).slices
    assert given.given is not None
    assert all(piece.given is None for piece in others)


def test_there_is_a_bound_for_a_micro_batch() -> None:
    payloads = Payloads(OVERHEAD + 8 + 100)
    for tid in range(2):
        payloads.keep(fed(tid, 100))
    one, two = payloads.given(micro_batch([0], [1])).slices
    assert (one.given is None, two.given is None) == (False, True)


def test_without_room_what_micro_batches_have_passed_makes_room_and_else_a_new_entry_is_not_kept() -> None:
    payloads = Payloads(OVERHEAD + 8 + 100)
    for tid in range(KEPT + 1):
        payloads.keep(fed(tid, 100))

    def given(tid: int) -> bool:
        return payloads.given(micro_batch([tid])).slices[0].given is not None

    assert [given(tid) for tid in range(KEPT + 1)] == [True] * KEPT + [False]
    payloads.keep(fed(KEPT + 1, 100))
    assert [given(tid) for tid in (0, 1, KEPT + 1)] == [False, True, True]


def test_nothing_is_kept_without_room_and_nothing_that_tasks_do_not_want() -> None:
    payloads = Payloads(0)
    payloads.keep(fed(0, 3))
    assert payloads.given(micro_batch([0])).slices[0].given is None
    status = Payloads(10_000)
    status.keep(Batch(0, 1, 0, (Entry(EntryKind.STATUS, StatusMeta()),)))
    assert status.given(micro_batch([0])).slices[0].given is None


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 400), st.integers(0, 30)), max_size=40),
       st.integers(0, 600))  # fmt: skip
def test_whatever_comes_the_bytes_that_are_kept_stay_in_bounds(came: list[tuple[int, int, int]], most: int) -> None:
    payloads = Payloads(most)
    for tid, size, wanted in came:
        payloads.keep(fed(tid, size))
        payloads.given(micro_batch([wanted]))
        kept = payloads._entries.values()  # noqa: SLF001
        assert sum(len(entry.data) + 8 + OVERHEAD for entry in kept) == payloads._bytes <= KEPT * most  # noqa: SLF001
