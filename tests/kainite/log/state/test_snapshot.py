"""A folded log as bytes: nothing of it is lost, and other data is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import LogCorruptError
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


def sections(*made: dict[str, Any]) -> bytes:
    """Returns sections of a snapshot, each as it is given."""
    encoded = [msgspec.msgpack.encode(section) for section in made]
    return b"".join(len(data).to_bytes(4, "big") + data for data in encoded)


EMPTY: dict[str, Any] = msgspec.to_builtins(snapshot.capture(FoldedLog()).header)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not begin with its header"),
        (b"[]", "unpack_from"),
        (b"\0\0\0\x09{}", "cut short"),
        (b"\0\0\0\x02{}", "cannot be read"),
        (sections(EMPTY | {"version": 2}), "Invalid enum value 2 - at `\\$.version`"),
        (sections(EMPTY | {"positions": {"s0": ["x", 0]}}), "matching regex"),
        (sections(EMPTY | {"next_id": -1}), "`int` >= 0"),
        (sections(EMPTY, EMPTY), "two headers"),
        (sections({"type": "units", "items": []}), "does not begin with its header"),
        (sections(EMPTY, {"type": "open", "items": [["T"]]}), "cannot be read"),
        (sections(EMPTY, {"type": "units", "items": [[1, [2, "T", 1], "odd"]]}), "Invalid enum value 'odd'"),
        (sections(EMPTY, {"type": "other", "items": []}), "Invalid value 'other'"),
    ],
)
def test_what_is_no_snapshot_of_this_version_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(LogCorruptError, match=message):
        snapshot.load(data)


DEEP = b"\xa1x" + b"\x91" * 100_000 + b"\x90"
"""A field of a MessagePack map that no release knows, too deep for any reader."""


def test_a_field_that_is_nested_too_deeply_is_refused() -> None:
    section = b"\x83\xa4type\xa4open\xa5items\x90" + DEEP
    with pytest.raises(LogCorruptError, match="recursion"):
        snapshot.load(len(section).to_bytes(4, "big") + section)
    with pytest.raises(LogCorruptError, match="recursion"):
        snapshot.part_ids(b"\x83\xa7version\x01\xa5parts\x91\x01" + DEEP)


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


def packed(**fields: Any) -> bytes:
    return msgspec.msgpack.encode(fields)


def test_a_list_of_parts_reads_back() -> None:
    assert snapshot.part_ids(snapshot.manifest([3, 5])) == (3, 5)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        packed(version=1),
        packed(version=1, parts=["x"]),
        packed(version=1, parts=[]),
        packed(version=2, parts=[1]),
    ],
)
def test_what_is_no_list_of_parts_is_refused(data: bytes) -> None:
    with pytest.raises(LogCorruptError, match="cannot be read"):
        snapshot.part_ids(data)


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
