"""The contract of every log store: one suite, run in memory and on each double of DynamoDB."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace

import pytest

from kainite.base.errors import LogCorruptError, LogError, LogUnavailableError
from kainite.log.contract import (
    ANSWERS_KEPT,
    NAMES_BYTES,
    REQUESTS_AT_ONCE,
    Fork,
    LogHead,
    LogStore,
    Slot,
    TransactionDecision,
)
from kainite.log.format.entry import Batch
from kainite.store.memory import without_data
from support.dynamodb_doubles import on_each_store
from support.log_builders import batch, fork

pytestmark = on_each_store

P = "0"
HEAD = LogHead(generation=1, owner="a", version="v1", lease_ms=1000, process="p")


def fill(store: LogStore, *counts: int) -> list[Batch]:
    """Puts batches with so many entries each, one after another from id 0."""
    batches, first_id = [], 0
    for number, count in enumerate(counts):
        batches.append(batch(first_id, count=count, data=os.urandom(20)))
        assert store.put_batch(P, batches[-1], f"n{number}") is None
        first_id += count
    return batches


def is_striped(store: LogStore) -> bool:
    tail = store.read_tail(P)
    return tail is not None and tail.fork is not None


class TestHead:
    def test_absent_until_written(self, store: LogStore) -> None:
        assert store.read_head(P) is None
        assert store.swap_head(P, HEAD, None)
        assert store.read_head(P) == HEAD

    def test_swapped_only_from_the_version_seen(self, store: LogStore) -> None:
        assert store.swap_head(P, HEAD, None)
        second = replace(HEAD, version="v2", released=True, high_water_mark=9, low_water_mark=4, snapshot=3)
        assert store.swap_head(P, second, HEAD)
        assert not store.swap_head(P, replace(HEAD, version="v3"), HEAD)
        assert not store.swap_head(P, replace(HEAD, version="v3"), None)
        assert store.read_head(P) == second

    def test_a_swap_sent_again_changes_nothing(self, store: LogStore) -> None:
        store.swap_head(P, HEAD, None)
        second = replace(HEAD, version="v2")
        assert store.swap_head(P, second, HEAD)
        store.swap_head(P, second, HEAD)
        assert store.read_head(P) == second

    def test_partitions_are_apart(self, store: LogStore) -> None:
        store.swap_head(P, HEAD, None)
        assert store.read_head("0:outcomes") is None
        assert store.read_head("00") is None


class TestNames:
    def test_segments_are_read_back_in_order_of_keys(self, store: LogStore) -> None:
        segments = {f"{number:020}/1": os.urandom(NAMES_BYTES) for number in (30, 4, 500, 77, 8)}
        for key, names in segments.items():
            store.put_names(P, key, names)
        store.put_names(P, f"{4:020}/1", segments[f"{4:020}/1"])
        assert list(store.read_names(P)) == sorted(segments.items())
        assert list(store.read_names("00")) == []

    def test_segments_that_are_deleted_are_gone(self, store: LogStore) -> None:
        keys = [f"{number:020}/1" for number in range(30)]
        for key in keys:
            store.put_names(P, key, b"16 bytes of names")
        store.delete_names(P, [*keys[2:], "never there"])
        assert [key for key, _ in store.read_names(P)] == keys[:2]


class TestDecisions:
    def test_the_first_one_stands(self, store: LogStore) -> None:
        assert store.decide(P, "1.1.a", committed=True, targets=("shop", "crm"))
        assert store.decide(P, "1.1.a", committed=False)
        assert not store.decide(P, "1.1.b", committed=False)
        assert not store.decide(P, "1.1.b", committed=True)
        assert list(store.read_decisions(P)) == [
            ("1.1.a", TransactionDecision(committed=True, targets=("shop", "crm"))),
            ("1.1.b", TransactionDecision(committed=False)),
        ]
        assert list(store.read_decisions("00")) == []

    def test_those_that_are_deleted_are_gone(self, store: LogStore) -> None:
        for number in range(30):
            store.decide(P, f"1.1.{number:02}", committed=number % 2 == 0)
        store.delete_decisions(P, [*(f"1.1.{number:02}" for number in range(29)), "never there"])
        assert list(store.read_decisions(P)) == [("1.1.29", TransactionDecision(committed=False))]


class TestSlots:
    def test_empty_log_has_no_tail(self, store: LogStore) -> None:
        tail = store.read_tail(P)
        assert tail is None or (tail.fork is not None and (tail.is_fence, tail.next_id) == (True, 0))
        assert list(store.read_batches(P, 0)) == []

    def test_the_tail_is_the_last_slot(self, store: LogStore) -> None:
        fill(store, 3, 2)
        assert store.read_tail(P) == Slot(3, 1, 2, "n1")

    def test_a_taken_slot_is_refused_and_shown(self, store: LogStore) -> None:
        fill(store, 3)
        assert store.put_batch(P, batch(0, generation=2), "other") == Slot(0, 1, 3, "n0")
        assert store.put_batch(P, batch(0, generation=1), "other") == Slot(0, 1, 3, "n0")

    def test_a_batch_sent_again_with_its_nonce_is_done(self, store: LogStore) -> None:
        [first] = fill(store, 3)
        assert store.put_batch(P, first, "n0") is None
        assert list(store.read_batches(P, 0, strong=True)) == [first]

    def test_a_fence_keeps_older_generations_out(self, store: LogStore) -> None:
        fill(store, 3)
        assert store.put_fence(P, 3, 2, "f") is None
        assert store.put_batch(P, batch(3, generation=1), "late") == Slot(3, 2, 0, "f")
        assert store.put_batch(P, batch(3, generation=2), "mine") is None
        assert store.read_tail(P) == Slot(3, 2, 1, "mine")

    def test_a_fence_gives_way_to_a_higher_one_only(self, store: LogStore) -> None:
        assert store.put_fence(P, 0, 2, "two") is None
        assert store.put_fence(P, 0, 1, "one") == Slot(0, 2, 0, "two")
        assert store.put_fence(P, 0, 2, "two") is None
        assert store.put_fence(P, 0, 2, "twin") == Slot(0, 2, 0, "two")
        assert store.put_fence(P, 0, 3, "three") is None
        assert store.read_tail(P) == Slot(0, 3, 0, "three")

    def test_a_fence_does_not_stand_over_data(self, store: LogStore) -> None:
        fill(store, 3)
        assert store.put_fence(P, 0, 5, "f") == Slot(0, 1, 3, "n0")


class TestForks:
    W = "1"

    def test_the_log_goes_on_behind_it(self, store: LogStore) -> None:
        first = batch(0, count=3)
        store.put_batch(self.W, first, "n0")
        store.put_fence(self.W, 3, 2, "f")
        assert store.put_fork(self.W, Fork(3, 3, 2), 2, "fork") is None
        assert store.put_fork(self.W, Fork(3, 3, 2), 2, "fork") is None
        tail = store.read_tail(self.W)
        assert tail == Slot(3, 2, 0, "fork")
        assert tail.fork == Fork(3, 3, 2)
        batches = [first]
        for number in range(9):
            batches.append(batch(batches[-1].last_id + 1, 2, count=number % 4 + 1, data=os.urandom(20)))
            assert store.put_batch(self.W, batches[-1], f"s{number}") is None
        tail = store.read_tail(self.W)
        assert tail == Slot(batches[-1].first_id, 2, 1, "s8")
        assert tail.fork == Fork(3, 3, 2)
        for first_id in (0, 2, 3, 9, batches[-1].last_id):
            expected = [each for each in batches if each.last_id >= first_id]
            assert list(store.read_batches(self.W, first_id, strong=True)) == expected
            assert list(store.read_batches(self.W, first_id)) in (expected, expected[:-1])
            assert list(store.read_batches(self.W, first_id, first_id, strong=True)) == expected[:1]

    def test_replaces_the_owners_own_fence_alone(self, store: LogStore) -> None:
        with pytest.raises(LogUnavailableError):
            store.put_fork(self.W, Fork(0, 3, 2), 2, "on nothing")
        store.put_fence(self.W, 0, 3, "theirs")
        assert store.put_fork(self.W, Fork(0, 3, 2), 2, "mine") == Slot(0, 3, 0, "theirs")
        store.put_batch(self.W, batch(0, 3), "n")
        assert store.put_fork(self.W, Fork(0, 3, 2), 3, "mine") == Slot(0, 3, 1, "n")

    def test_is_not_replaced(self, store: LogStore) -> None:
        fork(store, self.W)
        assert store.put_fork(self.W, Fork(0, 5, 2), 0, "other") == Slot(0, 0, 0, "fork")
        tail = store.read_tail(self.W)
        assert tail is not None
        assert tail.fork == Fork(0, 3, 2)

    def test_a_chunked_batch_behind_it(self, store: LogStore) -> None:
        fork(store, self.W)
        large = batch(0, count=3, data=os.urandom(900_000))
        batches = [large, *(batch(3 + number) for number in range(9))]
        for number, each in enumerate(batches):
            assert store.put_batch(self.W, each, f"n{number}") is None
        assert list(store.read_batches(self.W, 0, strong=True)) == batches
        assert store.truncate(self.W, 9) > 1
        assert list(store.read_batches(self.W, 9, strong=True)) == batches[7:]


class TestReading:
    def test_gives_what_was_put(self, store: LogStore) -> None:
        batches = fill(store, 3, 1, 2)
        assert list(store.read_batches(P, 0, strong=True)) == batches
        indices = list(store.read_batches(P, 0, data=False, strong=True))
        assert indices == [without_data(each) for each in batches]

    def test_weakly_may_lack_the_last_batch_and_nothing_else(self, store: LogStore) -> None:
        batches = fill(store, 3, 1, 2)
        assert list(store.read_batches(P, 0)) in (batches, batches[:-1])

    def test_weakly_looks_again_where_a_batch_in_the_middle_is_not_seen_yet(self, store: LogStore) -> None:
        first, last, middle = batch(0, count=2), batch(3), batch(2)
        for each in (first, last, middle):
            store.put_batch(P, each, f"n{each.first_id}")
        assert list(store.read_batches(P, 0)) == [first, middle, last]

    @pytest.mark.parametrize(
        ("first", "last", "expected"),
        [(0, 0, [0]), (2, 3, [0, 1]), (3, 3, [1]), (4, None, [2]), (5, 99, [2]), (6, None, []), (1, 5, [0, 1, 2])],
    )
    def test_batches_that_hold_any_id_of_the_range(
        self, store: LogStore, first: int, last: int | None, expected: list[int]
    ) -> None:
        batches = fill(store, 3, 1, 2)
        assert list(store.read_batches(P, first, last, strong=True)) == [batches[i] for i in expected]

    def test_a_batch_that_is_lost_before_a_fence_is_missed(self, store: LogStore) -> None:
        store.put_batch(P, batch(0), "n")
        store.put_fence(P, 2, 2, "behind the lost batch 1")
        with pytest.raises(LogCorruptError, match="has no entry 1"):
            list(store.read_batches(P, 0, strong=True))
        assert [each.first_id for each in store.read_batches(P, 0, 0, strong=True)] == [0]

    def test_a_fence_is_no_batch(self, store: LogStore) -> None:
        batches = fill(store, 2)
        store.put_fence(P, 2, 2, "f")
        assert list(store.read_batches(P, 0, strong=True)) == batches

    @pytest.mark.parametrize("strong", [True, False])
    def test_a_hole_is_an_error(self, store: LogStore, strong: bool) -> None:
        fill(store, 2)
        store.put_batch(P, batch(5), "beyond")
        store.put_batch(P, batch(6), "a weak read may lack this one")
        sees_all = strong or not is_striped(store)  # a weak read looks for what is behind in one stripe alone
        with pytest.raises(LogCorruptError, match="no entry 2") if sees_all else suppress(LogError):
            list(store.read_batches(P, 0, strong=strong))

    def test_a_unit_larger_than_an_item(self, store: LogStore) -> None:
        large = batch(0, count=3, data=os.urandom(900_000))
        small = batch(3)
        assert store.put_batch(P, large, "large") is None
        assert store.put_batch(P, small, "small") is None
        assert list(store.read_batches(P, 0, strong=True)) == [large, small]
        assert list(store.read_batches(P, 1, 2, data=False)) == [without_data(large)]
        assert store.read_tail(P) == Slot(3, 1, 1, "small")


class TestTruncation:
    def test_whole_slots_below_the_mark_go(self, store: LogStore) -> None:
        batches = fill(store, *[3] * 8)
        assert store.truncate(P, 13) == 4
        assert list(store.read_batches(P, 12, strong=True)) == batches[4:]

    @pytest.mark.parametrize("strong", [True, False])
    def test_a_reader_is_told_that_what_comes_next_is_truncated(self, store: LogStore, strong: bool) -> None:
        fill(store, *[3] * 9)
        store.truncate(P, 13)
        for first_id in (0, 1, 9, 11):
            with pytest.raises(LogCorruptError, match="no entry"):
                list(store.read_batches(P, first_id, strong=strong))

    def test_the_last_slot_stays_so_that_ids_go_on(self, store: LogStore) -> None:
        batches = fill(store, *[3] * 8)
        assert store.truncate(P, 99) == (6 if is_striped(store) else 7)
        assert list(store.read_batches(P, 21, strong=True)) == batches[7:]
        assert store.read_tail(P) == Slot(21, 1, 3, "n7")

    def test_large_batches_leave_nothing_behind(self, store: LogStore) -> None:
        large = batch(0, data=os.urandom(900_000))
        store.put_batch(P, large, "large")
        store.put_batch(P, batch(1), "small")
        assert store.truncate(P, 1) == 1
        assert list(store.read_batches(P, 1, strong=True)) == [batch(1)]

    def test_of_nothing(self, store: LogStore) -> None:
        assert store.truncate(P, 10) == 0


class TestRequests:
    def test_are_read_until_answered_and_answers_taken_once(self, store: LogStore) -> None:
        first = store.put_request(P, {"action": "retry", "uow": "T-1"})
        second = store.put_request(P, {"action": "discard", "uow": "T-2"})
        assert [request_id for request_id, _ in store.read_requests(P)] == [first, second]
        assert store.take_answer(P, first) is None
        store.answer_request(P, first, {"result": "ok"})
        assert list(store.read_requests(P)) == [(second, {"action": "discard", "uow": "T-2"})]
        assert store.take_answer(P, first) == {"result": "ok"}
        assert store.take_answer(P, first) is None

    def test_many_requests_are_read_some_at_a_time_the_oldest_first(self, store: LogStore) -> None:
        ids = [store.put_request(P, {"uow": f"T-{number}"}) for number in range(REQUESTS_AT_ONCE + 2)]
        assert [request_id for request_id, _ in store.read_requests(P)] == ids[:-2]
        for request_id in ids[:2]:
            store.answer_request(P, request_id, {"result": "ok"})
        assert [request_id for request_id, _ in store.read_requests(P)] == ids[2:]

    def test_answers_that_nobody_takes_are_deleted_oldest_first(self, store: LogStore) -> None:
        ids = [store.put_request(P, {"action": "retry", "uow": f"T-{number}"}) for number in range(ANSWERS_KEPT + 30)]
        for request_id in ids[:-1]:
            store.answer_request(P, request_id, {"result": "ok"})
        assert [request_id for request_id, _ in store.read_requests(P)] == ids[-1:]
        assert store.take_answer(P, ids[28]) is None
        assert store.take_answer(P, ids[29]) == {"result": "ok"}
