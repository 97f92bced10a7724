"""A folded log as bytes: nothing of it is lost, and other data is refused."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kainite.base.position import Position
from kainite.log.collecting.collect import collect
from kainite.log.collecting.overdue import expire
from kainite.log.format.entry import (
    ControlMeta,
    Entry,
    EntryKind,
    Fault,
    FragmentMeta,
    Outcome,
    PositionMeta,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state import snapshot
from kainite.log.state.folded import FoldedLog
from kainite.settings import UowSettings
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.touches import Touched
from support.log_builders import fragment, needed

ENTRIES = (
    Entry(EntryKind.FRAGMENT, FragmentMeta("A", "s0", 1, (1,)), Touched(frozenset({1, 2**64 - 1}), frozenset({2}))),
    Entry(
        EntryKind.FRAGMENT,
        FragmentMeta("A", "s1", 1, (2,), UnitEnd(2, 2, UnitKind.CORRECTION)),
        Touched(frozenset({3})),
    ),
    Entry(EntryKind.FRAGMENT, FragmentMeta("B", "s0", 0, causes=("bad",), offending="?")),
    Entry(EntryKind.FRAGMENT, FragmentMeta("B", "s0", 2, digests=(b"1" * 16, b"2" * 16), repeated=1)),
    Entry(
        EntryKind.UNIT, UnitMeta("B", 2, cause="late", fault=Fault.INCOMPLETE), Touched(frozenset({3}), frozenset({1}))
    ),
    Entry(
        EntryKind.FRAGMENT,
        FragmentMeta("B", "s2", 1, (7,), UnitEnd(9), causes=("odd",)),
        Touched(frozenset({5}), frozenset({3})),
    ),
    Entry(EntryKind.FRAGMENT, FragmentMeta("C", "s0", 0, (), UnitEnd(2, 3), causes=("slow",), fault=Fault.INCOMPLETE)),
    Entry(EntryKind.UNIT, UnitMeta("A", 2, ("s0", "s1"), (0, 1), 2, UnitKind.CORRECTION), Touched(frozenset({1, 3}))),
    Entry(EntryKind.UNIT, UnitMeta("B", 0, cause="bad"), Touched(frozenset({3}), frozenset({1}))),
    Entry(EntryKind.UNIT, UnitMeta("C", 1, number=1), Touched(frozenset({5}))),
    Entry(EntryKind.STATUS, StatusMeta((Outcome(0, UnitStatus.FAILED, 3, "no"), Outcome(1, UnitStatus.COMMITTED)), 4)),
    Entry(EntryKind.STATUS, StatusMeta((Outcome(0, UnitStatus.IN_PROGRESS, None, "retried"),), None, ("r1",))),
    Entry(EntryKind.STATUS, StatusMeta((Outcome(2, UnitStatus.BLOCKED), Outcome(3, UnitStatus.DISCARDED)))),
    Entry(EntryKind.POSITION, PositionMeta.of("s0", Position(2**180, 3))),
    Entry(EntryKind.CONTROL, ControlMeta(since=0)),
)
SOME = st.lists(st.sampled_from(ENTRIES), max_size=12)


def folded(entries: list[Entry]) -> FoldedLog:
    state = FoldedLog()
    for entry in entries:
        state.apply(state.next_id, entry, 17)
    return state


@given(SOME, SOME)
def test_a_loaded_state_goes_on_as_the_one_that_was_dumped(before: list[Entry], after: list[Entry]) -> None:
    state = folded(before)
    loaded = snapshot.load(snapshot.dump(state))
    for entry in after:
        for each in (state, loaded):
            each.apply(each.next_id, entry, 18)
    assert snapshot.dump(loaded) == snapshot.dump(state)


@given(SOME, SOME)
def test_a_captured_state_is_not_changed_by_what_comes_after(before: list[Entry], after: list[Entry]) -> None:
    state = folded(before)
    expected = snapshot.dump(state)
    parts = snapshot.parts(snapshot.capture(state))
    for entry in after:
        state.apply(state.next_id, entry, 18)
    assert b"".join(parts) == expected


def test_many_units_and_large_ones_make_several_parts() -> None:
    state = FoldedLog()
    for number in range(2_000):
        state.apply(state.next_id, Entry(EntryKind.UNIT, UnitMeta(f"T-{number}", 1), Touched(frozenset({number}))), 17)
    state.apply(
        state.next_id,
        Entry(EntryKind.UNIT, UnitMeta("large", 1), Touched(frozenset(range(2**63, 2**63 + 199_999)))),
        17,
    )
    parts = list(snapshot.parts(snapshot.capture(state)))
    assert len(parts) > 1
    assert all(len(part) == snapshot.PART_BYTES for part in parts[:-1])
    loaded = snapshot.load(b"".join(parts))
    assert loaded.units == state.units
    assert loaded.waiting_bytes == state.waiting_bytes
    assert loaded.statuses == state.statuses
    assert snapshot.needed_by(snapshot.capture(state)) == needed(state)


def test_what_was_captured_stays_as_it_was_while_units_go_on_collecting() -> None:
    state, rules = FoldedLog(), UowSettings()
    collect(state, rules, "s", Position(1), [fragment("A", [1]), fragment("B", [2], count=2), fragment("C", [3])], 0)
    expire(state, rules, 0, ["C"])
    expected = snapshot.dump(state)
    captured = snapshot.capture(state)
    for _ in range(2):
        collect(state, rules, "s", Position(2), [fragment("A", [4]), fragment("C", [5])], 0)
        expire(state, rules, 0, ["B"])
        collect(state, rules, "s", Position(3), [fragment("B", [6]), fragment("A", [7, 8], count=4)], 0)
    assert b"".join(snapshot.parts(captured)) == expected
    state.take_units_back()
    assert snapshot.dump(snapshot.load(snapshot.dump(state))) == snapshot.dump(state) != expected
