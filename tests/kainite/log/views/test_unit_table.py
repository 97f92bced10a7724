"""The rows that a person sees of the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kainite.log.contract import LogStore
from kainite.log.format.entry import Batch, Entry, EntryKind, Outcome, StatusMeta, UnitStatus
from kainite.log.state.outcomes import outcomes_partition
from kainite.log.views.unit_table import UNREADABLE, read_present_rows, read_rows, read_rows_between
from kainite.uow.delta import UnitEnd
from kainite.uow.packing import Blob, Piece
from kainite.uow.signature import Signatures
from support.log_builders import batch, delta
from support.main_log import MainLog


def test_what_is_truncated_is_not_shown_though_its_batch_still_is_there(store: LogStore) -> None:
    assert store.put_batch("p", batch(0, count=3), "n") is None
    assert [row.uow for row in read_rows(store, "p", 2)] == ["T-2"]


def status(first_id: int, *outcomes: Outcome, through: int | None = None) -> Batch:
    return Batch(first_id, 1, 0, (Entry(EntryKind.STATUS, StatusMeta(outcomes, through)),))


def test_outcomes_that_no_daemon_has_copied_are_shown(store: LogStore) -> None:
    # Unit 0 failed, which was copied, and was retried; units 1 and 2 were applied while no daemon ran.
    failed, committed = Outcome(0, UnitStatus.FAILED, 0, "no"), Outcome(1, UnitStatus.COMMITTED, 3)
    assert store.put_batch("p", batch(0, count=3), "n0") is None
    assert store.put_batch("p", status(3, failed, through=0), "n1") is None
    assert store.put_batch("p", status(4, Outcome(0, UnitStatus.IN_PROGRESS)), "n2") is None
    outcomes = outcomes_partition("p")
    assert store.put_batch(outcomes, status(0, failed), "n3") is None
    assert store.put_batch(outcomes, status(1, committed, Outcome(2, UnitStatus.BLOCKED, None, "waits")), "n4") is None
    rows = [(row.status, row.instance) for row in read_present_rows(store, "p")]
    assert rows == [("in progress", 0), ("committed", 3), ("blocked", None)]
    assert [row.status for row in read_rows(store, "p")] == ["in progress"] * 3


def test_a_log_whose_owner_never_copied_anything_has_all_outcomes_to_show(store: LogStore) -> None:
    assert store.put_batch("p", batch(0, count=1), "n0") is None
    assert store.put_batch(outcomes_partition("p"), status(0, Outcome(0, UnitStatus.COMMITTED, 1)), "n1") is None
    assert [row.status for row in read_present_rows(store, "p")] == ["committed"]


def a_log_with_late_parts(store: LogStore) -> MainLog:
    """Returns a log in which parts of a failed unit stand behind units that came after it."""
    log = MainLog(store, Signatures(None))
    log.unit("first", delta(1))
    log.append(log.fragment("late", delta(2)))
    failed = log.expire("late")
    log.unit("other", delta(3), delta(4))
    log.append(log.fragment("late", delta(5), ends=(UnitEnd(2),)))
    log.append(log.fragment("open", delta(6)))
    committed = (Outcome(tid, UnitStatus.COMMITTED, 0, at_ms=7) for tid in (0, failed))
    log.status(StatusMeta(tuple(committed)))
    return log


def test_the_rows_between_two_ids_are_those_of_the_whole_table(store: LogStore) -> None:
    log = a_log_with_late_parts(store)
    for low in range(log.state.next_id):
        whole = [row for row in read_rows(store, "0", low) if row.id is not None]
        for high in range(low, log.state.next_id + 1):
            wanted = [row for row in whole if row.id is not None and row.id < high]
            assert read_rows_between(store, "0", low, high) == wanted


@pytest.mark.parametrize("array", [b"no array", b"[1]", b"[{}]"], ids=str)
def test_a_unit_whose_deltas_cannot_be_read_has_a_row_nevertheless(store: LogStore, array: bytes) -> None:
    log, blob = MainLog(store, Signatures(None)), Blob.of(array)
    part = log.fragment("T", delta(1), ends=(UnitEnd(1),))
    log.append(replace(part, deltas=(), identities=(1,), piece=Piece(blob, 0, blob.size)))
    assert [(row.uow, row.signature) for row in read_rows(store, "0", 0)] == [("T", [UNREADABLE])]


def test_the_deltas_behind_the_rows_are_not_read(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    log = MainLog(store, Signatures(None))
    for uow in "ABCD":
        log.unit(uow, delta(1))
    read: list[int] = []
    read_batches = store.read_batches

    def counted(partition: str, first_id: int, last_id: int | None = None, **more: bool) -> Iterator[Batch]:
        for found in read_batches(partition, first_id, last_id, **more):
            read.extend([found.first_id] if more.get("data", True) else [])
            yield found

    monkeypatch.setattr(store, "read_batches", counted)
    assert [row.uow for row in read_rows_between(store, "0", 0, 2)] == ["A"]
    assert read == [0]
