"""The folded state of entries beside the units: positions, turns, conflicts, requests, marks."""

from __future__ import annotations

from collections import Counter

from kainite.log.format.entry import (
    ControlMeta,
    Entry,
    EntryKind,
    FragmentMeta,
    Outcome,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state.folded import ANSWERED_REQUESTS, FoldedLog
from kainite.uow.delta import UnitEnd
from kainite.uow.touches import Touched
from support.log_builders import needed


def folded(*entries: Entry) -> FoldedLog:
    state = FoldedLog()
    for entry in entries:
        state.apply(state.next_id, entry, 0)
    return state


def fragment(uow: str, count: int = 1, end_count: int | None = None, number: int | None = None) -> Entry:
    end = None if end_count is None else UnitEnd(end_count, number)
    return Entry(EntryKind.FRAGMENT, FragmentMeta(uow, "s0", count, end=end))


def unit(uow: str, *fragments: int, number: int | None = None, written: frozenset[int] = frozenset()) -> Entry:
    return Entry(EntryKind.UNIT, UnitMeta(uow, 1, fragments=fragments, number=number), Touched(written))


def status(*outcomes: Outcome, through: int | None = None, requests: tuple[str, ...] = ()) -> Entry:
    return Entry(EntryKind.STATUS, StatusMeta(outcomes, through, requests))


def test_a_complete_unit_with_a_number_waits_for_its_turn_until_it_is_dispatched() -> None:
    entries = [fragment("B", 1, 2, 2), fragment("B"), fragment("C", 1, 1), unit("A", number=1)]
    state = folded(*entries)
    assert (state.ready, state.next_number) == ({2: "B"}, 2)
    state.apply(4, unit("B", 0, 1, number=2), 0)
    assert (state.ready, state.next_number) == ({}, 3)
    assert "B" in state.recent


def test_a_number_is_never_the_next_one_again() -> None:
    assert folded(unit("B", number=7), unit("A", number=3)).next_number == 8


def test_outcomes_are_copied_through_the_highest_id_named() -> None:
    assert folded().through == -1
    assert folded(status(through=5), status(), status(through=3)).through == 5


def test_the_last_answered_requests_are_remembered() -> None:
    state = folded(*(status(requests=(str(number),)) for number in range(ANSWERED_REQUESTS + 2)))
    assert len(state.answered) == ANSWERED_REQUESTS
    assert "1" not in state.answered
    assert "2" in state.answered


def test_the_oldest_data_needed_is_that_of_open_and_unresolved_units() -> None:
    entries = [fragment("A"), fragment("B"), unit("A", 0), Entry(EntryKind.CONTROL, ControlMeta(since=3))]
    state = folded(*entries)
    assert (needed(state), state.snapshot_id) == (0, 3)
    state.apply(4, status(Outcome(2, UnitStatus.COMMITTED)), 0)
    assert needed(state) == 1
    state.apply(5, unit("B", 1), 0)
    state.apply(6, status(Outcome(5, UnitStatus.DISCARDED)), 0)
    assert needed(state) == state.next_id == 7


def test_statuses_are_counted_as_units_come_change_and_leave() -> None:
    state = folded(unit("A"), unit("B"), unit("C"))
    outcomes = [
        (0, UnitStatus.FAILED), (1, UnitStatus.BLOCKED), (0, UnitStatus.IN_PROGRESS), (2, UnitStatus.COMMITTED),
        (2, UnitStatus.FAILED), (1, UnitStatus.DISCARDED), (0, UnitStatus.COMMITTED),
    ]  # fmt: skip
    for tid, status_ in outcomes:
        state.apply(state.next_id, status(Outcome(tid, status_)), 0)
        assert +Counter(state.statuses) == Counter(each.status for each in state.units.values())
    assert not state.units


def test_an_unresolved_unit_is_found_by_its_name() -> None:
    state = folded(unit("A"), unit("B"), status(Outcome(0, UnitStatus.COMMITTED)))
    found = state.find("B")
    assert found is not None
    assert found.tid == 1
    assert state.find("A") is None
