"""What each unit conflicted with when it was dispatched."""

from __future__ import annotations

from kainite.log.format.entry import (
    Entry,
    EntryKind,
    Fault,
    FragmentMeta,
    Meta,
    Outcome,
    RefitMeta,
    StatusMeta,
    UnitMeta,
    UnitStatus,
)
from kainite.log.state.units import UnitFold
from kainite.log.views.unit_conflicts import UnitConflicts
from kainite.uow.delta import UnitEnd
from kainite.uow.touches import Touched

_KINDS = {FragmentMeta: EntryKind.FRAGMENT, UnitMeta: EntryKind.UNIT, RefitMeta: EntryKind.REFIT}


def entry(meta: Meta, *written: int, read: int | None = None) -> Entry:
    touched = Touched(frozenset(written), frozenset() if read is None else frozenset({read}))
    return Entry(_KINDS.get(type(meta), EntryKind.STATUS), meta, touched)


def found(*entries: Entry) -> list[int | None]:
    """Returns what the units among the entries conflicted with."""
    conflicts = UnitConflicts(UnitFold(keep_resolved=True))
    told = [(each.kind, conflicts.apply(tid, each, 0)) for tid, each in enumerate(entries)]
    return [conflict for kind, conflict in told if kind is EntryKind.UNIT]


def unit(uow: str, *written: int, read: int | None = None) -> Entry:
    return entry(UnitMeta(uow, 1), *written, read=read)


def test_the_latest_unresolved_unit_is_named() -> None:
    assert found(unit("A", 1), unit("B", 1, 2), unit("C", 2)) == [None, 0, 1]


def test_a_resolved_unit_is_none_and_a_failed_one_still_is() -> None:
    committed, failed = Outcome(0, UnitStatus.COMMITTED), Outcome(1, UnitStatus.FAILED)
    assert found(unit("A", 1), unit("B", 2), entry(StatusMeta((committed, failed))), unit("C", 1), unit("D", 2)) == [
        None, None, None, 1,
    ]  # fmt: skip


def test_readers_of_one_row_do_not_conflict() -> None:
    assert found(unit("A", read=7), unit("B", read=7), unit("C", 7)) == [None, None, 1]


def test_what_comes_late_of_a_failed_unit_counts() -> None:
    part = entry(FragmentMeta("A", "s", 1, (0,), UnitEnd(2)), 1)
    failed = entry(UnitMeta("A", 1, ("s",), (0,), cause="1 of 2 came", fault=Fault.INCOMPLETE), 1)
    late = entry(FragmentMeta("A", "s", 1, (1,)), 2)
    assert found(part, failed, unit("B", 2), late, unit("C", 2)) == [None, None, 2]
    assert found(part, failed, late, unit("C", 2)) == [None, 1]


def test_a_unit_that_was_judged_anew_counts_with_what_it_touches_now() -> None:
    misfit = entry(UnitMeta("A", 1, cause="no column", fault=Fault.MISFIT), 1)
    assert found(misfit, entry(RefitMeta(0, "A", 1), 2), unit("B", 1), unit("C", 2)) == [None, None, 0]
