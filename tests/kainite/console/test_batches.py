"""The strip of micro-batches."""

from __future__ import annotations

from kainite.console.batches import MOST, MicroBatchRing
from kainite.log.format.entry import Batch, Entry, EntryKind, Outcome, StatusMeta, UnitStatus


def batch(mark: tuple[int, int] | None, *outcomes: Outcome, first: int = 0) -> Batch:
    return Batch(first, 1, 1000 + first, (Entry(EntryKind.STATUS, StatusMeta(outcomes, mark=mark)),))


DONE = Outcome(1, UnitStatus.COMMITTED, 2)


def test_outcomes_of_one_mark_are_one_micro_batch() -> None:
    batches = MicroBatchRing()
    failed = Outcome(2, UnitStatus.FAILED)
    batches.note([batch((1, 7), DONE, failed), batch((1, 7), DONE, first=1), batch((1, 8), DONE, first=2)])
    first, second = batches.latest()
    assert (first.number, first.at_ms, first.committed, first.others, first.lanes) == (7, 1000, 2, 1, {2: 2})
    assert (second.number, second.committed) == (8, 1)


def test_outcomes_without_a_mark_stand_alone_and_empty_ones_not_at_all() -> None:
    batches = MicroBatchRing()
    batches.note(
        [batch(None, Outcome(1, UnitStatus.BLOCKED)), batch(None, Outcome(2, UnitStatus.BLOCKED)), batch((1, 1))]
    )
    assert [each.number for each in batches.latest()] == [None, None]


def test_the_ring_is_bounded() -> None:
    batches = MicroBatchRing()
    batches.note([batch((1, number), DONE) for number in range(MOST + 5)])
    assert [each.number for each in batches.latest()] == list(range(5, MOST + 5))
