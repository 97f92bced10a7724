"""The log's store in memory, beyond the contract of every store (test_contract.py): threads may share it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from kainite.base.errors import LogUnavailableError
from kainite.log.contract import Fork, LogHead
from kainite.log.format.entry import Batch, Entry, EntryKind, StatusMeta, UnitMeta
from kainite.store.memory import MemoryStore, without_data
from kainite.uow.touches import Touched

P = "0"
RIVALS = 8


def rivals(attempt: Callable[[int], bool]) -> int:
    """Returns how many of several threads succeed."""
    with ThreadPoolExecutor(RIVALS) as threads:
        return sum(threads.map(attempt, range(RIVALS)))


def batch(first_id: int, generation: int = 1) -> Batch:
    return Batch(first_id, generation, 0, (Entry(EntryKind.STATUS, StatusMeta()),))


def head(generation: int, version: str) -> LogHead:
    return LogHead(generation, "a", version, 1000, high_water_mark=-1, low_water_mark=0, snapshot=-1)


def test_of_threads_that_claim_at_once_one_has_the_head() -> None:
    store = MemoryStore()
    assert rivals(lambda number: store.swap_head(P, head(1, str(number)), None)) == 1


def test_of_threads_that_put_in_one_place_one_has_the_slot() -> None:
    store = MemoryStore()
    assert rivals(lambda number: store.put_batch(P, batch(0), str(number)) is None) == 1
    assert len(list(store.read_batches(P, 0))) == 1


def test_requests_of_threads_have_ids_of_their_own_in_the_order_in_which_they_came() -> None:
    store = MemoryStore()
    with ThreadPoolExecutor(RIVALS) as threads:
        ids = list(threads.map(lambda number: store.put_request(P, {"uow": str(number)}), range(RIVALS)))
    assert [request_id for request_id, _ in store.read_requests(P)] == sorted(set(ids))


def test_what_is_read_does_not_change_with_what_is_put_meanwhile() -> None:
    store = MemoryStore()
    store.put_batch(P, batch(0), "a")
    reading = store.read_batches(P, 0)
    first = next(reading)
    store.put_batch(P, batch(1), "b")
    store.put_names(P, "s", b"1")
    names = store.read_names(P)
    store.delete_names(P, ["s", "missing"])
    assert [first, *reading] == [batch(0)]
    assert list(names) == [("s", b"1")]


def test_a_fork_where_nothing_stands_may_be_tried_again() -> None:
    with pytest.raises(LogUnavailableError, match="no fence"):
        MemoryStore().put_fork(P, Fork(0, 3), 1, "n")


def test_without_data_a_batch_has_its_index_alone() -> None:
    entry = Entry(EntryKind.UNIT, UnitMeta("T", 1), Touched(frozenset({1}), frozenset({2})), b"deltas")
    [left] = without_data(Batch(0, 1, 0, (entry,))).entries
    assert (left.data, left.touched, left.meta) == (b"", entry.touched, entry.meta)
