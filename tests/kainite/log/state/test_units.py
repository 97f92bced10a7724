"""The fold of entries into units: what each kind of entry does, wherever in the log the fold begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kainite.base.position import Position
from kainite.log.format.entry import (
    Batch,
    ControlMeta,
    Entry,
    EntryKind,
    Fault,
    FragmentMeta,
    Meta,
    Outcome,
    PositionMeta,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.unit_state import UnitState
from kainite.log.state.units import UnitFold
from kainite.log.views.unit_table import read_rows
from kainite.log.views.unit_times import load_units
from kainite.store.memory import MemoryStore
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.touches import Touched, TouchedSoFar

IN_PROGRESS, COMMITTED, FAILED, BLOCKED, DISCARDED, DISCARDING = UnitStatus
KINDS = {
    FragmentMeta: EntryKind.FRAGMENT,
    UnitMeta: EntryKind.UNIT,
    StatusMeta: EntryKind.STATUS,
    PositionMeta: EntryKind.POSITION,
    ControlMeta: EntryKind.CONTROL,
}
NOW = 1_000


def entry(meta: Meta, written: Sequence[int] = (), read: Sequence[int] = ()) -> Entry:
    return Entry(KINDS[type(meta)], meta, Touched(frozenset(written), frozenset(read)))


def fragment(uow: str = "T", count: int = 1, shard: str = "s0", **more: Any) -> Entry:
    return entry(FragmentMeta(uow, shard, count, **more))


def unit(uow: str = "T", count: int = 1, **more: Any) -> Entry:
    return entry(UnitMeta(uow, count, **more))


def status(*outcomes: Outcome) -> Entry:
    return entry(StatusMeta(outcomes))


def folded(*entries: Entry, first_id: int = 0, keep_resolved: bool = False) -> UnitFold:
    fold = UnitFold(keep_resolved=keep_resolved)
    for tid, each in enumerate(entries, first_id):
        fold.apply(tid, each, NOW)
    return fold


FRAGMENTS: dict[str, tuple[list[Entry], OpenUnit]] = {
    "the first opens the unit": ([fragment()], OpenUnit("T", NOW, [0], ["s0"], 1)),
    "later ones add deltas, each shard once": (
        [fragment(), fragment(count=2, shard="s1"), fragment()],
        OpenUnit("T", NOW, [0, 1, 2], ["s0", "s1"], 4),
    ),
    "signatures and ordinals accumulate": (
        [entry(FragmentMeta("T", "s0", 1, (1,)), [7], [8]), entry(FragmentMeta("T", "s0", 1, (2,)), [9])],
        OpenUnit("T", NOW, [0, 1], ["s0"], 2, {"0": 6}, TouchedSoFar({7, 9}, {8})),
    ),
    "the end comes with any of them": (
        [fragment(end=UnitEnd(2, 5, UnitKind.REVERSAL)), fragment()],
        OpenUnit("T", NOW, [0, 1], ["s0"], 2, end=UnitEnd(2, 5, UnitKind.REVERSAL)),
    ),
    "all causes, and the first offending line": (
        [fragment(causes=("a", "b"), offending="x"), fragment(causes=("c",), offending="y")],
        OpenUnit("T", NOW, [0, 1], ["s0"], 2, causes=["a", "b", "c"], offending="x"),
    ),
}


@pytest.mark.parametrize(("entries", "expected"), FRAGMENTS.values(), ids=FRAGMENTS)
def test_fragments(entries: list[Entry], expected: OpenUnit) -> None:
    fold = folded(*entries)
    assert fold.open == {"T": expected}
    assert fold.units == {}


@pytest.mark.parametrize(
    ("opened", "complete"),
    [
        (OpenUnit("T", 0, count=2), False),
        (OpenUnit("T", 0, count=1, end=UnitEnd(2)), False),
        (OpenUnit("T", 0, count=2, end=UnitEnd(2)), True),
        (OpenUnit("T", 0, count=3, end=UnitEnd(2)), True),
        (OpenUnit("T", 0, count=0, end=UnitEnd(0)), True),
        (OpenUnit("T", 0, count=1, end=UnitEnd(2), causes=["bad"]), True),
        (OpenUnit("T", 0, count=1, causes=["bad"]), False),
    ],
)
def test_a_unit_is_complete_with_its_end_and_all_deltas_or_a_cause(opened: OpenUnit, complete: bool) -> None:
    assert opened.complete is complete


def test_a_dispatched_unit_is_open_no_more() -> None:
    fold = folded(
        fragment(),
        entry(UnitMeta("T", 2, ("s0", "s1"), (0,), 5, UnitKind.CORRECTION), [7, 9], [8]),
        unit("U"),
        entry(PositionMeta.of("s0", Position(9))),
        entry(ControlMeta(since=4)),
    )
    assert fold.open == {}
    meta = UnitMeta("T", 2, ("s0", "s1"), (0,), 5, UnitKind.CORRECTION)
    t = UnitState(1, meta, IN_PROGRESS, Touched(frozenset({7, 9}), frozenset({8})))
    assert fold.units == {1: t, 2: UnitState(2, UnitMeta("U", 1), IN_PROGRESS)}
    assert (t.uow, t.count, t.kind, t.number, t.shards, t.fragments) == (
        "T",
        2,
        UnitKind.CORRECTION,
        5,
        ("s0", "s1"),
        (0,),
    )
    assert (fold.units[1].first_tid, fold.units[2].first_tid) == (0, 2)


LIVES: dict[str, tuple[list[Outcome], tuple[UnitStatus, str | None, int | None, int]]] = {
    "as dispatched": ([], (IN_PROGRESS, None, None, 0)),
    "committed": ([Outcome(0, COMMITTED, 3)], (COMMITTED, None, 3, 0)),
    "failed": ([Outcome(0, FAILED, 3, "bad")], (FAILED, "bad", 3, 0)),
    "blocked, then free": (
        [Outcome(0, BLOCKED, None, "waits for S"), Outcome(0, IN_PROGRESS)],
        (IN_PROGRESS, None, None, 0),
    ),
    "a retry counts, and the instance stays": (
        [Outcome(0, FAILED, 3, "bad"), Outcome(0, IN_PROGRESS, cause="retried by me")],
        (IN_PROGRESS, "retried by me", 3, 1),
    ),
    "committed at the second retry, elsewhere": (
        [
            Outcome(0, FAILED, 3, "bad"),
            Outcome(0, IN_PROGRESS),
            Outcome(0, FAILED, 4, "bad"),
            Outcome(0, IN_PROGRESS),
            Outcome(0, COMMITTED, 5),
        ],
        (COMMITTED, None, 5, 2),
    ),
    "discarded": (
        [Outcome(0, FAILED, 3, "bad"), Outcome(0, DISCARDED, cause="discarded by me")],
        (DISCARDED, "discarded by me", 3, 0),
    ),
    "what the apply job found before it read of a discard": (
        [Outcome(0, DISCARDING, cause="by me"), Outcome(0, FAILED, 3, "bad"), Outcome(0, IN_PROGRESS, cause="locked")],
        (DISCARDING, "by me", None, 0),
    ),
    "committed before it could be discarded": (
        [Outcome(0, DISCARDING, cause="by me"), Outcome(0, COMMITTED, 3)],
        (COMMITTED, None, 3, 0),
    ),
    "discarded by the apply job": (
        [Outcome(0, DISCARDING, cause="by me"), Outcome(0, DISCARDED, cause="by me")],
        (DISCARDED, "by me", None, 0),
    ),
}


@pytest.mark.parametrize("together", [True, False], ids=["one entry", "an entry each"])
@pytest.mark.parametrize(("outcomes", "expected"), LIVES.values(), ids=LIVES)
def test_outcomes(
    outcomes: list[Outcome], expected: tuple[UnitStatus, str | None, int | None, int], together: bool
) -> None:
    entries = [status(*outcomes)] if together else [status(outcome) for outcome in outcomes]
    found = folded(unit(), *entries, keep_resolved=True).units[0]
    assert (found.status, found.cause, found.instance, found.attempt) == expected
    assert not found.malformed
    remaining = folded(unit(), *entries).units
    assert remaining == ({} if found.resolved else {0: found})


def test_a_unit_with_a_cause_is_born_failed_and_stays_malformed() -> None:
    fold = folded(unit(cause="bad", fault=Fault.MALFORMED), status(Outcome(0, IN_PROGRESS)))
    assert (fold.units[0].status, fold.units[0].malformed) == (IN_PROGRESS, True)


def test_an_entry_tells_what_it_resolved_each_once() -> None:
    fold = folded(unit("T"), unit("U"), unit("V"))
    outcomes = [Outcome(0, COMMITTED), Outcome(0, FAILED), Outcome(1, BLOCKED), Outcome(2, DISCARDED)]
    assert [resolved.uow for resolved in fold.apply(3, status(*outcomes), NOW)] == ["T", "V"]
    assert [left.uow for left in fold.units.values()] == ["U"]


def test_parts_under_the_name_of_a_resolved_unit_that_lacked_some_open_another() -> None:
    failed = unit("T", 1, cause="no end", fault=Fault.INCOMPLETE, fragments=(0,))
    fold = folded(fragment(), failed, fragment())
    assert (fold.late, fold.units[1].fragments, fold.open) == ({"T": 1}, [0, 2], {})
    fold = folded(fragment(), failed, status(Outcome(1, DISCARDED)), fragment())
    assert (fold.late, fold.units, fold.open["T"].fragments) == ({}, {}, [3])


def test_what_was_truncated_is_missing_and_disturbs_nothing() -> None:
    fold = folded(
        status(Outcome(3, COMMITTED)),  # of a unit before the beginning
        fragment(count=2, end=UnitEnd(5)),  # its first fragment is truncated
        unit("U", 3, fragments=(4, 7)),  # so is one of this unit's
        first_id=10,
    )
    assert (fold.open["T"].count, fold.open["T"].fragments, fold.open["T"].complete) == (2, [11], False)
    assert ([*fold.units], fold.units[12].count, fold.units[12].first_tid) == ([12], 3, 4)


def test_views_from_the_low_water_mark_leave_out_entries_of_its_batch_that_are_below() -> None:
    store = MemoryStore()
    entries = (unit("gone"), unit("T", cause="bad"), status(Outcome(0, COMMITTED), Outcome(1, DISCARDED, 2)))
    assert store.put_batch("0", Batch(0, 1, NOW, entries), "n") is None
    units = load_units(store, "0", 1).units
    assert [(tid, found.status, found.instance) for tid, found in units.items()] == [(1, DISCARDED, 2)]
    assert [(row.id, row.status, row.instance) for row in read_rows(store, "0", 1)] == [(1, "discarded", 2)]
