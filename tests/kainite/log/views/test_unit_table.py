"""The rows that a person sees of the log."""

from __future__ import annotations

from kainite.log.format.entry import Batch, Entry, EntryKind, Outcome, StatusMeta, UnitStatus
from kainite.log.state.outcomes import outcomes_partition
from kainite.log.store.contract import LogStore
from kainite.log.views.unit_table import read_present_rows, read_rows
from support.log_builders import batch


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
