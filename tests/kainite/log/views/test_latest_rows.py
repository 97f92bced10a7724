"""The log's last rows are those of the whole table, whatever part of the log is read for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.log.contract import LogHead
from kainite.log.format.entry import (
    Batch,
    Entry,
    EntryKind,
    Fault,
    FragmentMeta,
    Outcome,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state.folded import FoldedLog
from kainite.log.state.outcomes import outcomes_partition
from kainite.log.state.summary import DurableMarks, OwnersFigures, as_text, summary_of
from kainite.log.views import latest_rows
from kainite.log.views.latest_rows import read_latest_rows
from kainite.log.views.unit_table import LogRow, read_present_rows
from kainite.store.memory import MemoryStore

P = "0"
STATUSES = (UnitStatus.COMMITTED, UnitStatus.FAILED, UnitStatus.BLOCKED, UnitStatus.IN_PROGRESS, UnitStatus.DISCARDED)
_DATA = b'[{"table":"t","op":"upsert","key":{"id":%d},"after":{"id":1}}]'


@pytest.fixture(autouse=True)
def _short_reads() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latest_rows, "LEAST", 2)
        yield


class History:
    """A log that grows by the numbers that Hypothesis draws."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.open: dict[str, list[int]] = {}
        self.late: list[str] = []
        self.names = 0

    def step(self, choice: int, which: int) -> None:
        names = list(self.open)
        if choice == 0 or not (names or self.entries):
            self.names += 1
            self.fragment(f"T-{self.names}")
        elif choice == 1 and names:
            self.fragment(names[which % len(names)])
        elif choice in (2, 3) and names:
            self.unit(names[which % len(names)], fails=choice == 3)
        elif choice == 4 and self.late:
            self.add(EntryKind.FRAGMENT, FragmentMeta(self.late[which % len(self.late)], "s", 1))
        else:
            tid = which % len(self.entries) if self.entries else 0
            outcome = Outcome(tid, STATUSES[which % len(STATUSES)], 1, "why")
            self.add(EntryKind.STATUS, StatusMeta((outcome,), which if choice == 6 else None))

    def fragment(self, name: str) -> None:
        self.open.setdefault(name, []).append(len(self.entries))
        self.add(EntryKind.FRAGMENT, FragmentMeta(name, "s", 1))

    def unit(self, name: str, *, fails: bool) -> None:
        fragments = tuple(self.open.pop(name))
        if fails:
            self.late.append(name)
            meta = UnitMeta(name, len(fragments), ("s",), fragments, cause="late", fault=Fault.INCOMPLETE)
        else:
            meta = UnitMeta(name, len(fragments) + 1, ("s",), fragments)
        self.add(EntryKind.UNIT, meta)

    def add(self, kind: EntryKind, meta: FragmentMeta | UnitMeta | StatusMeta) -> None:
        data = (
            b""
            if isinstance(meta, StatusMeta) or (isinstance(meta, UnitMeta) and meta.cause)
            else _DATA % len(self.entries)
        )
        self.entries.append(Entry(kind, meta, data=data))


def stored(entries: list[Entry], size: int, summed: int) -> MemoryStore:
    """Returns a store with the entries in batches, and in HEAD the summary of the first ``summed`` of them."""
    store, state = MemoryStore(), FoldedLog()
    for at in range(0, len(entries), size):
        assert store.put_batch(P, Batch(at, 1, 0, tuple(entries[at : at + size])), f"n{at}") is None
    for entry in entries[:summed]:
        state.apply(state.next_id, entry, 0)
    mark = DurableMarks(state).now(state, state.next_id)
    text = as_text(summary_of(state, OwnersFigures(0, mark)))
    assert store.swap_head(P, LogHead(1, "w", "v", 1_000, summary=text), None)
    return store


def without_conflict(rows: list[LogRow]) -> list[LogRow]:
    return [replace(row, conflict=None) for row in rows]


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 50)), min_size=1, max_size=60),
    st.integers(1, 5),
    st.integers(0, 100),
    st.integers(1, 8),
)
def test_the_rows_are_the_last_ones_of_the_whole_table(
    steps: list[tuple[int, int]], size: int, summed: int, limit: int
) -> None:
    history = History()
    for choice, which in steps:
        history.step(choice, which)
    store = stored(history.entries, size, len(history.entries) * summed // 100)

    assert without_conflict(read_latest_rows(store, P, limit)) == without_conflict(read_present_rows(store, P)[-limit:])


class ReadIds(MemoryStore):
    """A store that notes where reads of the log begin."""

    def __init__(self) -> None:
        super().__init__()
        self.begins: list[int] = []

    def read_batches(
        self, partition: str, first_id: int, last_id: int | None = None, *, data: bool = True, strong: bool = False
    ) -> Iterator[Batch]:
        if partition == P:
            self.begins.append(first_id)
        return super().read_batches(partition, first_id, last_id, data=data, strong=strong)


def test_only_the_end_of_a_long_log_is_read() -> None:
    entries = [Entry(EntryKind.UNIT, UnitMeta(f"T-{number}", 1), data=_DATA % number) for number in range(100)]
    store = ReadIds()
    store._partitions = stored(entries, 10, 95)._partitions  # noqa: SLF001 - the same contents, noted

    assert [row.id for row in read_latest_rows(store, P, 3)] == [97, 98, 99]
    assert min(store.begins) == 89, "twice as many entries as rows, before what the summary knows"


def test_outcomes_that_no_owner_has_copied_are_shown() -> None:
    entries = [Entry(EntryKind.UNIT, UnitMeta(f"T-{number}", 1), data=_DATA % number) for number in range(9)]
    store = stored(entries, 3, 9)
    outcomes = Batch(0, 1, 0, (Entry(EntryKind.STATUS, StatusMeta((Outcome(8, UnitStatus.COMMITTED, 4),))),))
    assert store.put_batch(outcomes_partition(P), outcomes, "o") is None

    assert [(row.id, row.status, row.instance) for row in read_latest_rows(store, P, 2)] == [
        (7, "in progress", None),
        (8, "committed", 4),
    ]


def test_without_a_summary_the_whole_log_is_read() -> None:
    entries = [Entry(EntryKind.UNIT, UnitMeta("T-1", 1), data=_DATA % 1)]
    store = MemoryStore()
    assert store.put_batch(P, Batch(0, 1, 0, tuple(entries)), "n") is None
    assert read_latest_rows(store, P, 5) == read_present_rows(store, P)
    assert store.swap_head(P, LogHead(1, "w", "v", 1_000, summary="of a later form"), None)
    assert read_latest_rows(store, P, 5) == read_present_rows(store, P)


def test_a_late_part_of_a_unit_that_failed_long_ago_opens_no_row() -> None:
    history = History()
    history.step(0, 0)
    history.step(3, 0)
    for _ in range(20):
        history.step(0, 0)
        history.step(2, 0)
    summed = len(history.entries)
    history.step(4, 0)
    store = stored(history.entries, 3, summed)
    assert without_conflict(read_latest_rows(store, P, 2)) == without_conflict(read_present_rows(store, P)[-2:])
