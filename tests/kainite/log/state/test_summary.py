"""The figures that the owner writes into HEAD: counted from the fold, small, and never ahead of what is durable."""

from __future__ import annotations

import pytest

from kainite.log.format.entry import (
    TARGETS,
    ControlMeta,
    Entry,
    EntryKind,
    Fault,
    FragmentMeta,
    Outcome,
    StatusMeta,
    TargetMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state.folded import FoldedLog
from kainite.log.state.summary import (
    TEXT,
    DurableMark,
    DurableMarks,
    LogSummary,
    OwnersFigures,
    ShardFigure,
    TargetFigure,
    as_text,
    from_text,
    summary_of,
)
from kainite.settings.assignment import TableAssignment

MARK = DurableMark(0, 0, -1)


def folded(*metas: FragmentMeta | UnitMeta | StatusMeta) -> FoldedLog:
    state = FoldedLog()
    for meta in metas:
        kind = {FragmentMeta: EntryKind.FRAGMENT, UnitMeta: EntryKind.UNIT, StatusMeta: EntryKind.STATUS}[type(meta)]
        state.apply(state.next_id, Entry(kind, meta), 7_000)
    return state


def outcomes(*found: Outcome, through: int | None = None) -> StatusMeta:
    return StatusMeta(found, through)


WORLD = (
    UnitMeta("done", 1),
    UnitMeta("bad", 1, time=5_000_000_000, arrived_ms=6_000),
    UnitMeta("waiting", 1),
    UnitMeta("locked", 1),
    UnitMeta("fresh", 1),
    FragmentMeta("half", "s-1", 1),
    outcomes(
        Outcome(0, UnitStatus.COMMITTED, 1),
        Outcome(1, UnitStatus.FAILED, 3, "violates a check"),
        Outcome(2, UnitStatus.BLOCKED, None, "waits for 1"),
        Outcome(3, UnitStatus.IN_PROGRESS, 2, "the row is locked"),
        through=4,
    ),
)


def test_each_kind_of_unit_is_counted_and_the_first_of_it_named() -> None:
    found = summary_of(folded(*WORLD), OwnersFigures(9_000, MARK, queued=2, backlog="full", held="number 7"))

    counts = (found.in_progress, found.delayed, found.failed, found.blocked, found.collecting, found.dispatched)
    assert counts == (1, 1, 1, 1, 1, 4)
    assert (found.at_ms, found.next_id, found.queued, found.backlog, found.held) == (9_000, 7, 2, "full", "number 7")
    assert found.oldest == found.first_failed
    assert found.oldest is not None
    assert (found.oldest.uow, found.oldest.id, found.oldest.status) == ("bad", 1, "failed")
    assert (found.oldest.source_ms, found.oldest.arrived_ms) == (5_000, 6_000)
    assert (found.oldest.holder, found.oldest.cause) == ("job instance 3", "violates a check")
    assert found.first_delayed is not None
    assert (found.first_delayed.uow, found.first_delayed.cause) == ("locked", "the row is locked")
    assert found.oldest_open is not None
    assert (found.oldest_open.uow, found.oldest_open.holder, found.oldest_open.arrived_ms) == ("half", "s-1", 7_000)


def test_of_an_empty_log_everything_is_none() -> None:
    found = summary_of(FoldedLog(), OwnersFigures(1, MARK))
    assert found == LogSummary(1, 0, MARK)
    assert found.dispatched == 0


def test_the_shards_that_are_read_least_far_are_named_and_those_that_nobody_reads_first() -> None:
    shards = tuple(ShardFigure(f"s-{number}", float(number)) for number in range(9))
    found = summary_of(FoldedLog(), OwnersFigures(1, MARK, shards=(*shards, ShardFigure("s-x", None))))
    assert (found.shards, [shard.shard for shard in found.unread]) == (10, ["s-x", "s-8", "s-7"])


def test_a_summary_reads_back_and_is_small_whatever_the_names() -> None:
    long = "x" * 5_000
    state = folded(
        UnitMeta(long, 1), UnitMeta(long + "2", 1), FragmentMeta(long + "3", long, 1),
        outcomes(Outcome(0, UnitStatus.FAILED, 1, long), Outcome(1, UnitStatus.IN_PROGRESS, 1, long)),
    )  # fmt: skip
    found = summary_of(state, OwnersFigures(1, MARK))
    text = as_text(found)
    assert from_text(text) == found
    assert len(text) < 2_000
    assert found.oldest is not None
    assert len(found.oldest.uow) == TEXT


@pytest.mark.parametrize("text", ["", "no JSON", "{}", "[]", '["a", 1]'])
def test_another_form_is_no_summary(text: str) -> None:
    assert from_text(text) is None


def test_fields_of_a_later_release_are_passed_over() -> None:
    summary = LogSummary(1, 0, MARK, targets=(TargetFigure("crm", 3, 1),), assigned="digest")
    assert from_text(as_text(summary)[:-1] + ',"later"]') == summary


def test_a_target_says_since_when_its_apply_job_could_have_applied_a_unit() -> None:
    state = FoldedLog()

    def add(kind: EntryKind, meta: ControlMeta | UnitMeta | TargetMeta) -> None:
        state.apply(state.next_id, Entry(kind, meta), 7_000)

    def since() -> list[tuple[str, int, int, int | None]]:
        told = summary_of(state, OwnersFigures(1, MARK)).targets
        return [(target.name, target.waiting, target.failed, target.since_ms) for target in told]

    add(EntryKind.CONTROL, ControlMeta(TARGETS, key=TableAssignment((("a", ()), ("b", ("t",)))).as_text()))
    add(EntryKind.UNIT, UnitMeta("first", 1, time=5_000_000_000, arrived_ms=6_000))
    add(EntryKind.UNIT, UnitMeta("second", 1, arrived_ms=8_000))
    assert since() == [("a", 2, 0, 5_000), ("b", 0, 0, None)]
    add(EntryKind.TARGET, TargetMeta("a", (Outcome(1, UnitStatus.FAILED, 0, "refused"),), 0))
    assert since() == [("a", 2, 1, 8_000), ("b", 0, 0, None)]
    add(EntryKind.TARGET, TargetMeta("a", (Outcome(2, UnitStatus.IN_PROGRESS, 0, "the row is locked"),), 1))
    assert since() == [("a", 2, 1, None), ("b", 0, 0, None)]


def test_a_mark_is_the_latest_state_that_is_durable_as_a_whole() -> None:
    state = FoldedLog()
    marks = DurableMarks(state)

    def add(meta: FragmentMeta | UnitMeta | StatusMeta, kind: EntryKind) -> None:
        state.apply(state.next_id, Entry(kind, meta), 0)

    add(FragmentMeta("T", "s", 1), EntryKind.FRAGMENT)
    assert marks.now(state, 0) == DurableMark(0, 0, -1), "the fragment is not durable"
    add(UnitMeta("T", 1, fragments=(0,)), EntryKind.UNIT)
    # A reader would still see the unit as open: the mark is of the time when it was.
    assert marks.now(state, 1) == DurableMark(1, 0, -1)
    add(outcomes(through=5), EntryKind.STATUS)
    assert marks.now(state, 2) == DurableMark(2, 2, -1)
    assert marks.now(state, 3) == DurableMark(3, 3, 5)


def test_units_that_failed_before_they_were_whole_still_collect() -> None:
    late = UnitMeta("T", 1, fragments=(0,), cause="its end has not come", fault=Fault.INCOMPLETE)
    state = folded(FragmentMeta("T", "s", 1), late, UnitMeta("other", 1))
    assert DurableMarks(state).now(state, 3).collecting_from == 0
