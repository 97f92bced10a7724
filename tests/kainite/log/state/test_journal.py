"""Entries decided one after another."""

from __future__ import annotations

from kainite.base.position import Position
from kainite.log.format.entry import Entry, EntryKind, FragmentMeta, PositionMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.uow.touches import Touched


def test_each_entry_is_folded_before_the_next_is_decided() -> None:
    state = FoldedLog()
    journal = Journal(state, 17)
    journal.write(EntryKind.FRAGMENT, FragmentMeta("T", "s0", 1), Touched(frozenset({1}), frozenset({2})), data=b"[]")
    assert (state.open["T"].opened_ms, state.open["T"].touched.written, state.next_id) == (17, {1}, 1)
    journal.write(EntryKind.POSITION, PositionMeta.of("s0", Position(5)))
    assert state.positions == {"s0": Position(5)}
    assert journal.entries == [
        Entry(EntryKind.FRAGMENT, FragmentMeta("T", "s0", 1), Touched(frozenset({1}), frozenset({2})), b"[]"),
        Entry(EntryKind.POSITION, PositionMeta.of("s0", Position(5))),
    ]
