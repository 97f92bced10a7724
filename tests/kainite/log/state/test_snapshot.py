"""A folded log as bytes: nothing of it is lost, and other data is refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import LogCorruptError
from kainite.base.position import Position
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
from kainite.uow.delta import UnitKind
from kainite.uow.identity import join_digests
from support.log_builders import needed

ENTRIES = (
    Entry(EntryKind.FRAGMENT, FragmentMeta("A", "s0", 1, (1,)), frozenset({1, 2**64 - 1}), frozenset({2})),
    Entry(EntryKind.FRAGMENT, FragmentMeta("A", "s1", 1, (2,), 2, 2, UnitKind.CORRECTION), frozenset({3})),
    Entry(EntryKind.FRAGMENT, FragmentMeta("B", "s0", 0, causes=("bad",), offending="?")),
    Entry(EntryKind.FRAGMENT, FragmentMeta("B", "s0", 2, digests=join_digests([b"1" * 16, b"2" * 16]), repeated=1)),
    Entry(EntryKind.UNIT, UnitMeta("B", 2, cause="late", fault=Fault.INCOMPLETE), frozenset({3}), frozenset({1})),
    Entry(EntryKind.FRAGMENT, FragmentMeta("B", "s2", 1, (7,), 9, causes=("odd",)), frozenset({5}), frozenset({3})),
    Entry(EntryKind.FRAGMENT, FragmentMeta("C", "s0", 0, (), 2, 3, causes=("slow",), fault=Fault.INCOMPLETE)),
    Entry(EntryKind.UNIT, UnitMeta("A", 2, ("s0", "s1"), (0, 1), 2, UnitKind.CORRECTION, 0), frozenset({1, 3})),
    Entry(EntryKind.UNIT, UnitMeta("B", 0, cause="bad"), frozenset({3}), frozenset({1})),
    Entry(EntryKind.UNIT, UnitMeta("C", 1, number=1), frozenset({5})),
    Entry(EntryKind.STATUS, StatusMeta((Outcome(0, UnitStatus.FAILED, 3, "no"), Outcome(1, UnitStatus.COMMITTED)), 4)),
    Entry(EntryKind.STATUS, StatusMeta((Outcome(0, UnitStatus.IN_PROGRESS, None, "retried"),), None, ("r1",))),
    Entry(EntryKind.STATUS, StatusMeta((Outcome(2, UnitStatus.BLOCKED), Outcome(3, UnitStatus.DISCARDED)))),
    Entry(EntryKind.POSITION, PositionMeta("s0", Position(2**180, 3))),
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
    for unit in state.units.values():
        # A unit that was displaced by one that is gone is not found again; after a load it is.
        found, known = (each.conflicts.find(unit.written, unit.read) for each in (loaded, state))
        assert known is None or (found is not None and found >= known)


def changed(**fields: Any) -> bytes:
    return orjson.dumps(orjson.loads(snapshot.dump(FoldedLog())) | fields)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cannot be read"),
        (b"[]", "cannot be read"),
        (b"{}", "cannot be read: 'version'"),
        (changed(version=3), "has version 3; this release reads 1"),
        (changed(positions={"s0": ["x", 0]}), "cannot be read"),
        (changed(open=[{"uow": "T"}]), "cannot be read"),
        (changed(units=[{"tid": 1, "kind": "odd"}]), "cannot be read"),
    ],
)
def test_what_is_no_snapshot_of_this_version_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(LogCorruptError, match=message):
        snapshot.load(data)


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
        state.apply(state.next_id, Entry(EntryKind.UNIT, UnitMeta(f"T-{number}", 1), frozenset({number})), 17)
    state.apply(state.next_id, Entry(EntryKind.UNIT, UnitMeta("large", 1), frozenset(range(2**63, 2**63 + 99_999))), 17)
    parts = list(snapshot.parts(snapshot.capture(state)))
    assert len(parts) > 1
    assert all(len(part) == snapshot.PART_BYTES for part in parts[:-1])
    loaded = snapshot.load(b"".join(parts))
    assert loaded.units == state.units
    assert loaded.waiting_bytes == state.waiting_bytes
    assert loaded.statuses == state.statuses
    assert snapshot.needed_by(snapshot.capture(state)) == needed(state)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"version": 2}', b'{"version": 2, "parts": ["x"]}'])
def test_what_is_no_list_of_parts_is_refused(data: bytes) -> None:
    with pytest.raises(LogCorruptError, match="cannot be read"):
        snapshot.part_ids(data)
