"""Counts units and deltas from the log as it grows."""

from __future__ import annotations

from kainite.base.position import Position
from kainite.log.format.entry import (
    Batch,
    Entry,
    EntryKind,
    FragmentMeta,
    Outcome,
    PositionMeta,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.store.memory import MemoryStore
from kainite.uow.delta import UnitEnd
from kainite.uow.touches import Touched
from kainite_demo.log_watch import LogWatch


def fragment(uow: str, count: int, *, end: int | None = None, number: int | None = None) -> Entry:
    return Entry(EntryKind.FRAGMENT, FragmentMeta(uow, "s", count, end=None if end is None else UnitEnd(end, number)))


def unit(uow: str, count: int, number: int, *fragments: int) -> Entry:
    return Entry(EntryKind.UNIT, UnitMeta(uow, count, fragments=fragments, number=number), Touched(frozenset({7})))


def outcomes(*found: Outcome) -> Entry:
    return Entry(EntryKind.STATUS, StatusMeta(found))


def put(store: MemoryStore, first_id: int, *entries: Entry) -> int:
    store.put_batch("0", Batch(first_id, 1, 0, entries), f"nonce {first_id}")
    return first_id + len(entries)


def test_the_log_tells_how_far_each_unit_is() -> None:
    store = MemoryStore()
    watch = LogWatch(store, "0")
    assert watch.poll().records == 0
    position = Entry(EntryKind.POSITION, PositionMeta.of("s", Position(1)))
    end = put(store, 0, fragment("b", 2), position, fragment("b", 1, end=3, number=2), fragment("a", 1))
    counts = watch.poll()
    assert (counts.deltas, counts.collected, counts.dispatched, counts.records) == (4, 1, 0, 5)
    end = put(store, end, unit("a", 2, 1, 3), unit("b", 3, 2, 0, 2))
    counts = watch.poll()
    assert (counts.deltas, counts.collected, counts.dispatched, counts.records) == (5, 2, 2, 7)
    assert (counts.conflicts, counts.committed, counts.failed) == (1, 0, {})
    put(store, end, outcomes(Outcome(4, UnitStatus.COMMITTED, 1), Outcome(5, UnitStatus.FAILED, 0, "no such row")))
    counts = watch.poll()
    assert (counts.committed, counts.instances, counts.failed) == (1, {0, 1}, {5: "no such row"})


def test_a_unit_that_was_malformed_counts_as_failed() -> None:
    store = MemoryStore()
    put(store, 0, Entry(EntryKind.UNIT, UnitMeta("a", 0, number=1, cause="invalid JSON")))
    assert LogWatch(store, "0").poll().failed == {0: "invalid JSON"}
