"""The outcomes partition, as readers of the log see it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kainite.base.errors import LogCorruptError
from kainite.log.contract import LogHead, LogStore
from kainite.log.format.entry import Batch, Entry, EntryKind, Outcome, StatusMeta, UnitStatus
from kainite.log.state.outcomes import outcomes_of, outcomes_partition, stored_batches
from kainite.store.memory import MemoryStore


def status(first_id: int, *tids: int) -> Batch:
    outcomes = tuple(Outcome(tid, UnitStatus.COMMITTED, 0) for tid in tids)
    return Batch(first_id, 1, 0, (Entry(EntryKind.STATUS, StatusMeta(outcomes)),))


def test_outcomes_come_in_order_from_the_id_asked_for() -> None:
    batches = [status(0, 5), status(1, 6, 7)]
    assert [outcome.tid for outcome in outcomes_of(batches, 0)] == [5, 6, 7]
    assert [outcome.tid for outcome in outcomes_of(batches, 1)] == [6, 7]


def test_a_partition_that_no_apply_job_has_mounted_has_no_outcomes(store: LogStore) -> None:
    assert stored_batches(store, "p") == []


class _Truncating(MemoryStore):
    """Truncates the partition during the first read, as an apply job does."""

    def __init__(self, low: int) -> None:
        super().__init__()
        self.low = low
        self.reads = 0

    def read_batches(
        self, partition: str, first_id: int, last_id: int | None = None, *, data: bool = True, strong: bool = False
    ) -> Iterator[Batch]:
        self.reads += 1
        if self.reads == 1:
            head = self.read_head(partition)
            new = LogHead(1, "apply", "v2", 1_000, low_water_mark=self.low)
            assert self.swap_head(partition, new, head)
            raise LogCorruptError("entries are missing")
        return super().read_batches(partition, first_id, last_id, data=data, strong=strong)


def test_entries_that_are_truncated_during_the_read_are_left_out() -> None:
    store, name = _Truncating(1), outcomes_partition("p")
    assert store.swap_head(name, LogHead(1, "apply", "v1", 1_000), None)
    for batch in (status(0, 5), status(1, 6)):
        assert store.put_batch(name, batch, f"n{batch.first_id}") is None
    assert [batch.first_id for batch in stored_batches(store, "p")] == [1]


def test_a_partition_that_does_not_read_back_is_an_error() -> None:
    store = _Truncating(0)
    assert store.swap_head(outcomes_partition("p"), LogHead(1, "apply", "v1", 1_000), None)
    with pytest.raises(LogCorruptError):
        stored_batches(store, "p")
